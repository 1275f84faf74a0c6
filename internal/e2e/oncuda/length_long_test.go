//go:build cuda && linux && long

package oncuda

// seeds are the orders of the device that every plan is tried in.
const seeds = 5

// stepsOf is all steps.
func stepsOf(golden int) int { return golden }

// lawful are the trainings of TestBudgetLaw.
func lawful() []training {
	list := trainings()
	return append(list[:4:4], list[len(list)-2:]...) // without those that differ from the others in size alone
}
