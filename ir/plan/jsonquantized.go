package plan

// jsonQuantized is what became of the weights that the user asked to store in fewer bits. Errors that are not known are left out.
type jsonQuantized struct {
	Weights int64             `json:"weights"`
	Saved   int64             `json:"saved_bytes"`
	RelL2   *float64          `json:"relative_l2,omitempty"` // of all together
	Tensors []jsonQuantWeight `json:"tensors"`
	Skipped []jsonSkipped     `json:"skipped"`
}

type jsonQuantWeight struct {
	Name       string   `json:"name"`
	Format     string   `json:"format"`
	Bytes      int64    `json:"bytes"`
	WasBytes   int64    `json:"was_bytes"`
	RelL2      *float64 `json:"relative_l2,omitempty"`
	WorstBlock *float64 `json:"worst_block,omitempty"` // relative L2 of the worst group of elements that share a scale
}

type jsonSkipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

func quantizedOf(r *Report) jsonQuantized {
	known := func(x float64) *float64 {
		if x == NotMeasured {
			return nil
		}
		return &x
	}
	q := jsonQuantized{Weights: r.QuantizedWeights, Saved: r.QuantizedSavedBytes, Tensors: []jsonQuantWeight{}, Skipped: []jsonSkipped{}}
	if r.QuantizedWeights > 0 {
		q.RelL2 = known(r.QuantizedRelL2)
	}
	for _, x := range r.Quantized {
		if x.Skipped != "" {
			q.Skipped = append(q.Skipped, jsonSkipped{x.Name, x.Skipped})
			continue
		}
		q.Tensors = append(q.Tensors, jsonQuantWeight{x.Name, x.Format, x.Bytes, x.WasBytes, known(x.RelL2), known(x.WorstBlock)})
	}
	return q
}

// worstQuantized is the weight that loses most, nil if that is not known.
func worstQuantized(r *Report) *Quantized {
	var worst *Quantized
	for i := range r.Quantized {
		if x := &r.Quantized[i]; x.Skipped == "" && x.RelL2 != NotMeasured && (worst == nil || x.RelL2 > worst.RelL2) {
			worst = x
		}
	}
	return worst
}
