package main

import (
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"

	"aitk/internal/regular"
	"aitk/ir"
)

func solveCommand() command {
	return command{name: "solve", args: "memory|pack FILE", min: 2, max: 2, short: "the planner and the allocator alone, on cost graphs (JSON) and buffers (CSV)", run: solve,
		long: `solve memory reads a cost graph in the JSON of the MOCCASIN benchmark and says which nodes to run again so that a budget is kept at the least
cost: --budget 80% is the share of the peak of the file's own order, rounded up. With --h2d values may also be copied to the host and back. solve pack
reads buffers in the CSV of minimalloc or idealloc (id,lower,upper,size) and gives each an offset. What is printed was
checked by a simulator that shares nothing with the search. Exit 4 where nothing fits, and then it is said whether that is proved.`}
}

func solve(c *call) error {
	what, path := c.args[0], c.args[1]
	only := map[string][]string{
		"memory": {"budget", "order", "effort", "seconds", "sweep", "h2d", "d2h", "latency", "duplex", "host", "time-unit"},
		"pack":   {"capacity", "seconds", "effort", "threads"},
	}
	mine, ok := only[what]
	if !ok {
		return usagef("aitk solve %s: want memory or pack%s", what, didYouMean(what, []string{"memory", "pack"}))
	}
	for other, flags := range only {
		for _, f := range flags {
			if other != what && c.has(f) && !slices.Contains(mine, f) {
				return usagef("--%s is a flag of solve %s, and this is solve %s", f, other, what)
			}
		}
	}
	raw, err := c.readSolved(path)
	if err != nil {
		return err
	}
	if what == "memory" {
		return c.solveMemory(path, raw)
	}
	return c.solvePack(path, raw)
}

// maxSolvedBytes is the largest file that solve reads.
const maxSolvedBytes = 256 << 20

// readSolved reads a file of costs, bounded, "-" for standard input.
func (c *call) readSolved(path string) ([]byte, error) {
	in := c.stdin
	if path != "-" {
		f, err := regular.Open(path)
		if err != nil {
			return nil, cannotOpen("solve", path, err)
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxSolvedBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(raw) > maxSolvedBytes {
		return nil, ir.Errorf(ir.Unsupported, ir.Origin{File: path}, "larger than %d bytes, the most that solve reads", int64(maxSolvedBytes))
	}
	return raw, nil
}

// badFile is a file that is not what it should be.
func badFile(err error) error { return &ir.Error{Kind: ir.Unsupported, Cause: err} }

// share is percent of a whole, rounded up, with percent taken as the decimal that a user wrote and not as its binary neighbour.
func share(percent float64, whole int64) int64 {
	p, ok := new(big.Rat).SetString(strconv.FormatFloat(percent, 'f', -1, 64))
	if !ok {
		panic(ir.Bugf("%v is no decimal", percent))
	}
	p.Mul(p, new(big.Rat).SetFrac64(whole, 100))
	q, rest := new(big.Int).QuoRem(p.Num(), p.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return 1<<63 - 1
	}
	return q.Int64()
}
