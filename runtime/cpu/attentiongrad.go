package cpu

import (
	"math"

	"aitk/ir/op"
	"aitk/runtime"
)

// attnSides are the operands of the gradients.
type attnSides struct{ q, k, v, dy *side }

func (a *attn) sides() attnSides {
	return attnSides{
		q:  newSide(a.q, a.Batch*a.Heads, a.Queries, a.Size),
		k:  newSide(a.k, a.Batch*a.Groups, a.Keys, a.Size),
		v:  newSide(a.v, a.Batch*a.Groups, a.Keys, a.Width),
		dy: newSide(a.dy, a.Batch*a.Heads, a.Queries, a.Width),
	}
}

// rowFacts loads lse and dy·y of n queries of a head.
func (a *attn) rowFacts(w *worker, head, first, n, lseBlock, dotBlock int) (lse, dot []float64) {
	lse, dot = w.f64(lseBlock)[:n], w.f64(dotBlock)[:n]
	row := head*int(a.Queries) + first
	a.lse.load(lse, row)
	for r := range dot {
		var sum float64
		at := (row + r) * int(a.Width)
		for c := 0; c < int(a.Width); c += blockElems {
			m := min(blockElems, int(a.Width)-c)
			y, dy := w.f64(attnLoad)[:m], w.f64(attnLoadToo)[:m]
			a.y.load(y, at+c)
			a.dy.load(dy, at+c)
			for i, g := range dy {
				sum += float64(y[i] * g)
			}
		}
		dot[r] = sum
	}
	return lse, dot
}

// weight is exp(score - lse); a row that has none gets zeros.
func weight(score, lse float64) float64 {
	if math.IsInf(lse, -1) {
		return 0
	}
	return math.Exp(score - lse)
}

func attentionGrad(b *builder, o op.AttentionGrad) (runtime.Kernel, error) {
	a, err := newAttn(b, o.Scale, o.Guard, 6, 4)
	if err != nil {
		return nil, err
	}
	var out [3]floats
	for i := range out {
		if out[i], err = b.floatOut(i); err != nil {
			return nil, err
		}
	}
	s := a.sides()
	queryBlocks, keyBlocks := (int(a.Queries)+a.rows-1)/a.rows, (int(a.Keys)+a.rows-1)/a.rows
	sizePieces, pieces := chunks(a.Size), chunks(a.Size, a.Width)
	byQuery := b.tiles(int(a.Batch*a.Heads)*queryBlocks*sizePieces, func(w *worker, tile int) error {
		head, block := tile/sizePieces/queryBlocks, tile/sizePieces%queryBlocks
		c0, c1 := chunk(tile%sizePieces, a.Size)
		a.queryGrad(w, s, &out[0], head, block*a.rows, min((block+1)*a.rows, int(a.Queries)), c0, c1)
		return nil
	})
	byKey := b.tiles(int(a.Batch*a.Groups)*keyBlocks*pieces, func(w *worker, tile int) error {
		group, block := tile/pieces/keyBlocks, tile/pieces%keyBlocks
		a.keyGrad(w, s, &out[1], &out[2], group, block*a.rows, min((block+1)*a.rows, int(a.Keys)), tile%pieces)
		return nil
	})
	return b.sequence(byQuery, byKey), nil
}

// scoreGrads fills p and ds with the softmax and the gradient of the scores of some queries (rows) for some keys, packed for the next product,
// or in rows where packed is false. done says that the panels of the rows are packed.
func (a *attn) scoreGrads(w *worker, s attnSides, head, group int, q, k span, lse, dot, ds []float64, packed, done bool) {
	n, keys := q.hi-q.lo, k.hi-k.lo
	ld := roundUp(keys, colStrip)
	quarter := panelElems / 4
	scores, grads := w.tile[2*quarter:3*quarter], w.tile[3*quarter:]
	dots(w, scores, ld, q, k, w.panelA[:quarter], done)
	dots(w, grads, ld, span{s.dy, head, q.lo, q.hi}, span{s.v, group, k.lo, k.hi}, w.panelA[quarter:2*quarter], done)
	b, h := head/int(a.Heads), head%int(a.Heads)
	clear(ds[:roundUp(n, rowStrip)*keys])
	for r := range n {
		row, grad := scores[r*ld:r*ld+keys], grads[r*ld:r*ld+keys]
		a.score(w, row, b, h, q.lo+r, k.lo)
		for j, x := range row {
			d := weight(x, lse[r]) * (grad[j] - dot[r])
			if packed {
				ds[strip(r, j, keys)] = d * a.scale
			} else {
				ds[r*keys+j] = d
			}
		}
	}
}

// queryGrad computes columns [c0, c1) of dq for queries [lo, hi) of a head.
func (a *attn) queryGrad(w *worker, s attnSides, dq *floats, head, lo, hi, c0, c1 int) {
	n := hi - lo
	rows, ld := roundUp(n, rowStrip), roundUp(c1-c0, colStrip)
	group := head/int(a.Heads)*int(a.Groups) + head%int(a.Heads)/int(a.Heads/a.Groups)
	lse, dot := a.rowFacts(w, head, lo, n, attnRowMax, attnRowSum)
	acc := w.tile[:rows*ld]
	clear(acc)
	ds := w.panelA[panelElems/2:]
	for j := 0; j < int(a.Keys); j += a.cols {
		k := span{s.k, group, j, min(j+a.cols, int(a.Keys))}
		a.scoreGrads(w, s, head, group, span{s.q, head, lo, hi}, k, lse, dot, ds, true, j > 0)
		mix(w, acc, ld, rows, ds, k, c0, c1)
	}
	for r := range n {
		dq.store((head*int(a.Queries)+lo+r)*int(a.Size)+c0, acc[r*ld:r*ld+c1-c0])
	}
}

// keyGrad computes a piece of the columns of dk and dv for keys [lo, hi) of a group: here keys are the rows and queries the columns.
func (a *attn) keyGrad(w *worker, s attnSides, dk, dv *floats, group, lo, hi, piece int) {
	n := hi - lo
	rows := roundUp(n, rowStrip)
	k0, k1 := chunk(piece, a.Size)
	v0, v1 := chunk(piece, a.Width)
	kld, vld := roundUp(k1-k0, colStrip), roundUp(v1-v0, colStrip)
	quarter := panelElems / 4
	accK, accV := w.tile[:rows*kld], w.tile[quarter:quarter+rows*vld]
	clear(accK)
	clear(accV)
	scores, grads := w.tile[2*quarter:3*quarter], w.tile[3*quarter:]
	p, ds := w.panelA[2*quarter:3*quarter], w.panelA[3*quarter:]
	keys := span{s.k, group, lo, hi}
	per := int(a.Heads / a.Groups)
	packed := false
	b, g := group/int(a.Groups), group%int(a.Groups)
	for h := g * per; h < (g+1)*per; h++ {
		head := b*int(a.Heads) + h
		for i := 0; i < int(a.Queries); i += a.cols {
			q := span{s.q, head, i, min(i+a.cols, int(a.Queries))}
			m := q.hi - q.lo
			ld := roundUp(m, colStrip)
			lse, dot := a.rowFacts(w, head, i, m, attnColLSE, attnColDot)
			dots(w, scores, ld, keys, q, w.panelA[:quarter], packed)
			dots(w, grads, ld, span{s.v, group, lo, hi}, span{s.dy, head, q.lo, q.hi}, w.panelA[quarter:2*quarter], packed)
			packed = true
			clear(p[:rows*m])
			clear(ds[:rows*m])
			if a.hasMask {
				a.maskColumns(w, scores, ld, b, h, q, lo, n)
			}
			for r := range n {
				row, grad := scores[r*ld:r*ld+m], grads[r*ld:r*ld+m]
				pr, dr := p[strip(r, 0, m):], ds[strip(r, 0, m):]
				for c, x := range row {
					if !a.hasMask {
						x *= a.scale
					}
					weight := weight(x, lse[c])
					pr[c*rowStrip] = weight
					dr[c*rowStrip] = weight * (grad[c] - dot[c]) * a.scale
				}
			}
			mix(w, accV, vld, rows, p, span{s.dy, head, q.lo, q.hi}, v0, v1)
			mix(w, accK, kld, rows, ds, q, k0, k1)
		}
	}
	for r := range n {
		row := group*int(a.Keys) + lo + r
		dk.store(row*int(a.Size)+k0, accK[r*kld:r*kld+k1-k0])
		dv.store(row*int(a.Width)+v0, accV[r*vld:r*vld+v1-v0])
	}
}

// maskColumns scales products and adds the mask, where queries are the columns and n keys from first on the rows.
func (a *attn) maskColumns(w *worker, scores []float64, ld, b, h int, q span, first, n int) {
	mask := w.f64(attnMask)[:n]
	for c := range q.hi - q.lo {
		a.loadMask(mask, b, h, q.lo+c, first)
		for r, x := range mask {
			scores[r*ld+c] = float64(scores[r*ld+c]*a.scale) + x
		}
	}
}

// attentionMaskGrad adds up, block by block, the gradients of the scores of all heads that share a mask.
func attentionMaskGrad(b *builder, o op.AttentionMaskGrad) (runtime.Kernel, error) {
	a, err := newAttn(b, o.Scale, o.Guard, 6, 4)
	if err != nil {
		return nil, err
	}
	out, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	s := a.sides()
	shape := b.outType(0).Shape
	blocks := (int(a.Queries) + a.rows - 1) / a.rows
	return b.tiles(int(shape[0]*shape[1])*blocks, func(w *worker, tile int) error {
		own, lo := tile/blocks, tile%blocks*a.rows
		hi := min(lo+a.rows, int(a.Queries))
		for j := 0; j < int(a.Keys); j += a.cols {
			end := min(j+a.cols, int(a.Keys))
			acc := w.tile[:(hi-lo)*(end-j)]
			clear(acc)
			ds := w.panelA[panelElems/2:]
			for head := range int(a.Batch * a.Heads) {
				b, h := head/int(a.Heads), head%int(a.Heads)
				if b%int(shape[0])*int(shape[1])+h%int(shape[1]) != own {
					continue
				}
				group := b*int(a.Groups) + h/int(a.Heads/a.Groups)
				lse, dot := a.rowFacts(w, head, lo, hi-lo, attnRowMax, attnRowSum)
				a.scoreGrads(w, s, head, group, span{s.q, head, lo, hi}, span{s.k, group, j, end}, lse, dot, ds, false, false)
				for i := range acc {
					acc[i] += ds[i]
				}
			}
			for r := range hi - lo {
				out.store((own*int(a.Queries)+lo+r)*int(a.Keys)+j, acc[r*(end-j):(r+1)*(end-j)])
			}
		}
		return nil
	}), nil
}
