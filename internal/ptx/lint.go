package ptx

// Finding is an instruction that a module's target or version does not have.
type Finding struct {
	Kernel string
	Line   int
	Text   string
}

func (f *Finding) Error() string { return f.Text }

// Lint lists what needs more than the module declares.
func Lint(m *Module) []*Finding { return nil }
