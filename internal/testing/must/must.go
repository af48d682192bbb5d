// Package must ends a test at an error that is none of what it is about.
package must

import "fmt"

// TB is what it needs of a test: a testing.TB, or a rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test if err is not nil. about says what it is an error of.
func Do(t TB, err error, about ...any) {
	if err != nil {
		t.Helper() // only here: it walks the stack
		t.Fatal(append(about, err)...)
	}
}

// True ends the test with a message if something does not hold that the rest of it needs.
func True(t TB, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Fatal(fmt.Sprintf(format, args...))
	}
}

// Get takes what a function returns. The function that it returns ends the test if there was an error, and otherwise
// returns the value:
//
//	f := must.Get(os.Open(name))(t)
func Get[T any](value T, err error) func(t TB) T {
	return func(t TB) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return value
	}
}
