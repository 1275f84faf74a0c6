// Package e2e holds the tests that need importer, passes and runtime together: the budget law, parity with golden trainings, gradients
// against another library. It exports nothing to the product.
package e2e
