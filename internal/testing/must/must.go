// Package must ends a test at an error that is none of what it is about.
package must

import "testing"

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	if err != nil {
		t.Helper() // only here: it walks the stack
		t.Fatal(err)
	}
}

// Get takes what a function returns. The function that it returns ends the test if there was an error, and otherwise
// returns the value:
//
//	f := must.Get(os.Open(name))(t)
func Get[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return value
	}
}
