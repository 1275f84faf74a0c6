package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"aitk/ir"
	"aitk/runtime"
	"aitk/runtime/train/data"
)

// EvalOptions of Eval.
type EvalOptions struct {
	Data   *data.Source
	Split  float64 // judge only the fraction that training with this EvalSplit holds out; 0: all samples
	Labels data.Labels
	Metric Metric
}

// EvalResult is what an evaluation came to.
type EvalResult struct {
	Loss    float64 // mean over all labels or elements that count, whatever the loss's reduction; of a model's own loss the mean over samples
	Metric  string  // name
	Value   float64 // of the metric; accuracy lies in [0,1]
	Samples int64   // judged
	Skipped int64   // samples of a last, partial batch that the program cannot mask
	Seconds float64

	counted float64 // what the loss is divided by
}

func (r *EvalResult) String() string {
	s := fmt.Sprintf("eval loss %.5g", r.Loss)
	switch r.Metric {
	case "", "loss":
	case "accuracy":
		s += fmt.Sprintf(", accuracy %.2f %%", 100*r.Value)
	default:
		s += fmt.Sprintf(", %s %.5g", r.Metric, r.Value)
	}
	return s + fmt.Sprintf(" (%d samples)", r.Samples)
}

// Eval judges the parameters that lie in memory, by program eval over a data set. needs: program init has run.
func Eval(ctx context.Context, exe *runtime.Executable, o EvalOptions) (*EvalResult, []string, error) {
	if o.Data == nil {
		return nil, nil, ir.Errorf(ir.Usage, ir.Origin{}, "evaluating needs data (--data)")
	}
	var order *data.Order
	if o.Split > 0 && o.Split < 1 && o.Data.Layout() == data.Samples {
		order = data.NewOrder(o.Data.Samples(), o.Split, 0)
	} else if o.Split != 0 {
		return nil, nil, ir.Errorf(ir.Usage, ir.Origin{}, "--eval-split %v: want a fraction between 0 and 1 of data in samples", o.Split)
	}
	e, err := newEvaluator(exe, o.Data, order, o.Labels, o.Metric)
	if err != nil {
		return nil, nil, err
	}
	r, err := e.run(ctx)
	return r, e.notes, err
}

// evaluator runs program eval over a data set, again and again.
type evaluator struct {
	call    *call
	order   *data.Order // its held-out samples; nil: all of src
	src     *data.Source
	metric  string
	scorer  *scorer // nil: the metric follows from the loss
	masks   bool
	samples []int64
	notes   []string
}

func newEvaluator(exe *runtime.Executable, src *data.Source, order *data.Order, labels data.Labels, m Metric) (*evaluator, error) {
	p, _ := exe.Plan().Program("eval")
	if p == nil {
		return nil, &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("the plan has no program eval"), Remedy: "compile it with one"}
	}
	results := []string{"loss", "$sum", "$count"}
	if m.Name != "" && m.Name != "loss" && m.Name != "perplexity" {
		results = append(results, m.output(p))
	}
	e := &evaluator{src: src, order: order, metric: m.Name}
	var err error
	if e.call, err = newCall(exe, "eval", src, labels, results...); err != nil {
		return nil, err
	}
	if e.call.feed == nil || e.call.result("loss") == nil {
		return nil, ir.Errorf(ir.Unsupported, ir.Origin{}, "program eval of the plan takes no data or gives no loss")
	}
	if e.scorer, err = newScorer(m, p, e.call); err != nil {
		return nil, err
	}
	e.masks = e.call.takes("$valid")
	e.notes = e.call.feed.Notes()
	batch := e.call.feed.BatchSamples()
	e.samples = make([]int64, batch)
	if n := e.count(); src.Layout() == data.Samples && !e.masks {
		if n < batch {
			return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("data %s: %d samples to judge are fewer than a batch of %d, and the loss cannot leave out the rest of one", src.Path(), n, batch),
				Remedy: "choose a smaller batch"}
		}
		if n%batch != 0 {
			e.notes = append(e.notes, fmt.Sprintf("evaluation leaves out the last %d of %d samples: the loss cannot mask a part of a batch", n%batch, n))
		}
	}
	return e, nil
}

// counts tells whether the program says itself how much of a batch counts.
func (e *evaluator) counts() bool {
	return e.call.result("$count") != nil && e.call.result("$sum") != nil
}

// count is the number of samples to judge, in layout Samples.
func (e *evaluator) count() int64 {
	if e.order != nil {
		return e.order.Held()
	}
	return e.src.Samples()
}

// run judges all batches. A cancelled context ends it between two.
func (e *evaluator) run(ctx context.Context) (*EvalResult, error) {
	begin := time.Now()
	r := &EvalResult{Metric: e.metric}
	if e.scorer != nil {
		e.scorer.reset()
	}
	var err error
	if e.src.Layout() == data.Batches {
		err = e.runBatches(ctx, r)
	} else {
		err = e.runSamples(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	if e.counts() && r.counted == 0 {
		return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("data %s: none of the labels of %d samples counts, all are ignored", e.src.Path(), r.Samples),
			Remedy: "judge other data, or look at ignore-index of --loss"}
	}
	r.Loss /= r.counted
	switch {
	case e.scorer != nil:
		r.Value = e.scorer.value()
	case e.metric == "perplexity":
		r.Value = math.Exp(r.Loss)
	default:
		r.Value = r.Loss
	}
	r.Seconds = time.Since(begin).Seconds()
	return r, nil
}

func (e *evaluator) runBatches(ctx context.Context, r *EvalResult) error {
	for k := range e.src.Batches() {
		if err := e.call.feed.FillBatch(k, -1); err != nil {
			return err
		}
		if err := e.batch(ctx, r, e.call.feed.BatchSamples()); err != nil {
			return err
		}
	}
	return nil
}

func (e *evaluator) runSamples(ctx context.Context, r *EvalResult) error {
	n, batch := e.count(), e.call.feed.BatchSamples()
	for at := int64(0); at < n; at += batch {
		valid := min(batch, n-at)
		if valid < batch && !e.masks {
			r.Skipped = valid
			break
		}
		for i := range valid {
			e.samples[i] = at + i
			if e.order != nil {
				e.samples[i] = e.order.HeldSample(at + i)
			}
		}
		if err := e.call.feed.Fill(e.samples[:valid], -1); err != nil {
			return err
		}
		if err := e.batch(ctx, r, valid); err != nil {
			return err
		}
	}
	return nil
}

// batch runs the program on what the feed holds.
func (e *evaluator) batch(ctx context.Context, r *EvalResult, valid int64) error {
	if err := e.call.set(&reserved{valid: valid}); err != nil {
		return err
	}
	if err := e.call.exe.Run(ctx, "eval"); err != nil {
		return err
	}
	if err := e.call.read(); err != nil {
		return err
	}
	r.Samples += valid
	if !e.counts() {
		r.Loss += e.call.scalarOf("loss") * float64(valid)
		r.counted += float64(valid)
	} else if n := e.call.scalarOf("$count"); n > 0 { // a mean over nothing is NaN, and counts nothing
		r.Loss += e.call.scalarOf("$sum")
		r.counted += n
	}
	if e.scorer != nil {
		e.scorer.add(valid)
	}
	return nil
}

// labelAt is label i of the target.
func (s *scorer) labelAt(i int64) int64 {
	if s.want.DType == ir.I64 {
		return int64(binary.LittleEndian.Uint64(s.target[8*i:]))
	}
	return int64(int32(binary.LittleEndian.Uint32(s.target[4*i:])))
}
