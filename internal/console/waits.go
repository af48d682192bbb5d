//go:build !core

package console

// Waits says what the process waits for before it is ready.
func (s *supervisor) Waits(what string) {
	if s != nil {
		s.notify("STATUS=waiting " + what)
	}
}
