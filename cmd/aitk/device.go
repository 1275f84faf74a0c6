package main

import (
	"aitk/internal/regular"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
)

// memoryOptions are the settings of the back half that the command line gives.
func (c *call) memoryOptions(profile *cost.Profile) (passes.MemoryOptions, error) {
	m := passes.MemoryOptions{Profile: profile, BudgetBytes: -1, HostBudgetBytes: -1, Effort: c.effort, Recompute: c.recompute != "none", Swap: c.swap != "none"}
	switch c.budget.kind {
	case sizeBytes:
		m.BudgetBytes = c.budget.bytes
	case sizePercent:
		m.BudgetPercent = c.budget.percent
	case sizeAuto:
		if c.device == "cuda" && c.gpu == "" {
			free, err := freeOnDevice()
			if err != nil {
				return m, err
			}
			m.BudgetBytes = free
			break
		}
		if profile.MemoryBytes == 0 {
			return m, usagef("--budget auto is the memory of a card, and profile %s has none: give --gpu NAME or a size", profile.Name)
		}
		m.BudgetBytes = profile.UsableBytes()
	}
	switch c.hostBudget.kind {
	case sizeBytes:
		m.HostBudgetBytes = c.hostBudget.bytes
	case sizePercent, sizeAuto:
		return m, usagef("--host-budget: want a size in bytes or none")
	case sizeNotGiven:
		if profile.HostAddressable { // moving bytes within one memory frees none
			m.Swap = false
			if c.swap == "auto" {
				c.note("--swap auto: nothing is swapped on %s without --host-budget, since both arenas are the same memory", profile.Name)
			}
		}
	}
	return m, nil
}

// compileMemory is the back half, with the settings of the command line.
func (c *call) compileMemory(ctx *passes.Context, profile *cost.Profile) (*plan.Plan, error) {
	m, err := c.memoryOptions(profile)
	if err != nil {
		return nil, err
	}
	if c.recompute == "all" { // the peak-minimiser's plan, which is what a budget of its own arena gives
		least := m
		least.BudgetBytes, least.BudgetPercent = 0, 0
		p, err := passes.Compile(ctx, least)
		if p == nil {
			return nil, err
		}
		if c.budget.kind == sizeNotGiven || c.budget.kind == sizeNone {
			m.BudgetBytes = p.Report.MinimumBudgetBytes
		}
	}
	return passes.Compile(ctx, m)
}

// deviceProfile is the cost model that the flags ask for.
func (c *call) deviceProfile() (*cost.Profile, error) {
	switch {
	case c.gpu != "" && c.profile != "":
		return nil, usagef("--gpu and --profile both name a cost model: give one")
	case c.gpu != "":
		p, err := cost.GPU(c.gpu)
		if err != nil {
			return nil, usagef("--gpu: %w", err)
		}
		if c.device == "cpu" {
			return nil, usagef("--gpu %s is the cost model of a card, and --device is cpu", c.gpu)
		}
		return p, nil
	case c.profile != "":
		raw, err := regular.ReadFile(c.profile)
		if err != nil {
			return nil, cannotOpen("--profile", c.profile, err)
		}
		p, err := cost.Parse(raw)
		if err != nil {
			return nil, usagef("%s: %w", c.profile, err)
		}
		if c.device != "" && c.device != p.Device {
			return nil, usagef("--profile %s is for device %s, and --device is %s", c.profile, p.Device, c.device)
		}
		return p, nil
	case c.device == "cuda":
		return c.cardProfile()
	case c.device == "null":
		return cost.Null(), nil
	}
	return cost.CPUGeneric(), nil
}
