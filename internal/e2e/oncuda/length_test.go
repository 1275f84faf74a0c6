//go:build cuda && linux && !long

package oncuda

// seeds are the orders of the device that every plan is tried in.
const seeds = 5

// stepsOf shortens trainings: two steps show every op.
func stepsOf(golden int) int { return min(golden, 2) }

// lawful are the trainings of TestBudgetLaw.
func lawful() []training { return []training{trainings()[0], trainings()[3]} }
