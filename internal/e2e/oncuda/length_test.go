//go:build cuda && linux && !long

package oncuda

// seeds are the orders of the device that every plan is tried in.
const seeds = 5

// level is the fake's checkLevel while seeds change.
const level = 2

// stepsOf shortens trainings: two steps show every op.
func stepsOf(golden int) int { return min(golden, 2) }

// lawful are the trainings of TestBudgetLaw.
func lawful() []training { return trainings()[:1] }
