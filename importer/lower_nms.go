package importer

import (
	"cmp"
	"math"
	"slices"
)

// lowerNonMaxSuppression keeps, for each class of each image, the best boxes that do not overlap a better one. How many there are depends on content, so
// boxes and scores must be known.
func lowerNonMaxSuppression(c *call) []*operand {
	c.args(2, 5)
	boxes, scores := c.constant(0, "boxes"), c.constant(1, "scores")
	bs, ss := boxes.Type.Shape, scores.Type.Shape
	if len(bs) != 3 || len(ss) != 3 || bs[2] != 4 || ss[0] != bs[0] || ss[2] != bs[1] || len(boxes.F) == 0 && bs.Elems() > 0 {
		c.invalid("boxes %v and scores %v", boxes.Type, scores.Type)
	}
	most, overlap, least := int64(0), 0.0, math.Inf(-1)
	if c.has(2) {
		most = c.constInt(2, "max_output_boxes_per_class")
	}
	if c.has(3) {
		overlap = c.constFloat(3, "iou_threshold")
	}
	if c.has(4) {
		least = c.constFloat(4, "score_threshold")
	}
	centred := c.int("center_point_box", 0) != 0
	if bs[1] > 1<<16 {
		c.unsupported("%d boxes", bs[1])
	}
	var out []int64
	for b := range bs[0] {
		for class := range ss[1] {
			score := func(i int64) float64 { return scores.F[(b*ss[1]+class)*ss[2]+i] }
			var order []int64
			for i := range bs[1] {
				if !c.has(4) || score(i) > least {
					order = append(order, i)
				}
			}
			slices.SortStableFunc(order, func(i, j int64) int { return cmp.Compare(score(j), score(i)) })
			var kept [][4]float64
			for _, i := range order {
				if int64(len(kept)) >= most {
					break
				}
				box := corners(boxes.F[(b*bs[1]+i)*4:], centred)
				if !slices.ContainsFunc(kept, func(k [4]float64) bool { return intersection(box, k) > overlap }) {
					kept = append(kept, box)
					out = append(out, b, class, i)
				}
			}
		}
	}
	return one(ints(out, int64(len(out)/3), 3))
}

// corners are the least and greatest coordinates of a box.
func corners(x []float64, centred bool) [4]float64 {
	if centred {
		return [4]float64{x[0] - x[2]/2, x[1] - x[3]/2, x[0] + x[2]/2, x[1] + x[3]/2}
	}
	return [4]float64{min(x[0], x[2]), min(x[1], x[3]), max(x[0], x[2]), max(x[1], x[3])}
}

// intersection is the common area of two boxes over that of both together.
func intersection(a, b [4]float64) float64 {
	area := func(x [4]float64) float64 { return (x[2] - x[0]) * (x[3] - x[1]) }
	w, h := min(a[2], b[2])-max(a[0], b[0]), min(a[3], b[3])-max(a[1], b[1])
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h / (area(a) + area(b) - w*h)
}
