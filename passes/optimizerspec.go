package passes

// OptimizerSpec is a parsed --optimizer. Formulas are PyTorch's.
type OptimizerSpec struct {
	Name                string // sgd, adam, adamw; "": adamw
	LR                  float64
	Momentum, Dampening float64 // sgd
	Nesterov            bool    // sgd
	Beta1, Beta2, Eps   float64 // adam, adamw
	WeightDecay         float64 // sgd, adam: added to the gradient; adamw: shrinks the weight
}

func optimizerNames() []string { return []string{"sgd", "adam", "adamw"} }

// ParseOptimizer reads NAME[:k=v,...]. Defaults are PyTorch's: lr 0.01 for sgd and 0.001 for adam and adamw, betas 0.9 and 0.999, eps
// 1e-8, weight decay 0 and for adamw 0.01. The error is of kind Usage and names every mistake.
func ParseOptimizer(text string) (OptimizerSpec, error) {
	s := cutSpec("optimizer", text)
	s.settings()
	o := OptimizerSpec{Name: s.name}
	atLeast0 := func(x float64) bool { return x >= 0 }
	in01 := func(x float64) bool { return x >= 0 && x < 1 }
	switch o.Name {
	case "sgd":
		o.LR = 0.01
		s.float("lr", &o.LR, "a number >= 0", atLeast0)
		s.float("momentum", &o.Momentum, "a number >= 0", atLeast0)
		s.float("dampening", &o.Dampening, "a finite number", func(float64) bool { return true })
		s.bool("nesterov", &o.Nesterov)
		if o.Nesterov && (o.Momentum == 0 || o.Dampening != 0) {
			s.problems = append(s.problems, "nesterov needs a momentum and no dampening")
		}
	case "adam", "adamw":
		o.LR, o.Beta1, o.Beta2, o.Eps = 0.001, 0.9, 0.999, 1e-8
		if o.Name == "adamw" {
			o.WeightDecay = 0.01
		}
		s.float("lr", &o.LR, "a number >= 0", atLeast0)
		s.float("beta1", &o.Beta1, "a number in [0,1)", in01)
		s.float("beta2", &o.Beta2, "a number in [0,1)", in01)
		s.float("eps", &o.Eps, "a number >= 0", atLeast0)
	default:
		return OptimizerSpec{}, s.unknownName(optimizerNames())
	}
	s.float("weight-decay", &o.WeightDecay, "a number >= 0", atLeast0)
	if err := s.done(); err != nil {
		return OptimizerSpec{}, err
	}
	return o, nil
}

// String is the form that ParseOptimizer reads, with every setting, so that a recorded plan does not depend on defaults.
func (o OptimizerSpec) String() string {
	switch o.Name {
	case "sgd":
		nesterov := ""
		if o.Nesterov {
			nesterov = "true"
		}
		return formatSpec(o.Name, "lr", formatFloat(o.LR), "momentum", formatFloat(o.Momentum), "dampening", formatFloat(o.Dampening),
			"nesterov", nesterov, "weight-decay", formatFloat(o.WeightDecay))
	case "":
		return ""
	}
	return formatSpec(o.Name, "lr", formatFloat(o.LR), "beta1", formatFloat(o.Beta1), "beta2", formatFloat(o.Beta2),
		"eps", formatFloat(o.Eps), "weight-decay", formatFloat(o.WeightDecay))
}
