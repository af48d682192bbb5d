// Package assert reports what a test finds other than it should be, and lets the test go on.
package assert

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// TB is what it needs of a test: a testing.TB, or a rapid.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
}

// Equal reports a value that is not the wanted one. about says what it is a value of.
func Equal[T comparable](t TB, got, want T, about ...any) {
	if got != want {
		t.Helper() // only here: it walks the stack
		t.Errorf("%sgot %s, want %s", subject(about), show(got), show(want))
	}
}

// Not reports a value that is the unwanted one.
func Not[T comparable](t TB, got, unwanted T, about ...any) {
	if got == unwanted {
		t.Helper()
		t.Errorf("%sgot %s", subject(about), show(got))
	}
}

// Slice is Equal of slices.
func Slice[S ~[]E, E comparable](t TB, got, want S, about ...any) {
	if !slices.Equal(got, want) {
		t.Helper()
		t.Errorf("%sgot %s\nwant %s", subject(about), show(got), show(want))
	}
}

// Deep is Equal by reflect.DeepEqual.
func Deep(t TB, got, want any, about ...any) {
	if !reflect.DeepEqual(got, want) {
		t.Helper()
		t.Errorf("%sgot %s\nwant %s", subject(about), show(got), show(want))
	}
}

// AtMost reports a value above a bound.
func AtMost[T cmp.Ordered](t TB, got, most T, about ...any) {
	if got > most {
		t.Helper()
		t.Errorf("%sgot %s, want %s at most", subject(about), show(got), show(most))
	}
}

// AtLeast reports a value below a bound.
func AtLeast[T cmp.Ordered](t TB, got, least T, about ...any) {
	if got < least {
		t.Helper()
		t.Errorf("%sgot %s, want %s at least", subject(about), show(got), show(least))
	}
}

// Contains reports a text without a part.
func Contains(t TB, text, part string, about ...any) {
	if !strings.Contains(text, part) {
		t.Helper()
		t.Errorf("%s%q is not in\n%s", subject(about), part, text)
	}
}

// True reports by a message what does not hold.
func True(t TB, holds bool, format string, args ...any) {
	if !holds {
		t.Helper()
		t.Errorf(format, args...)
	}
}

// Is reports an error that is not the wanted one, by errors.Is.
func Is(t TB, err, want error, about ...any) {
	if !errors.Is(err, want) {
		t.Helper()
		t.Errorf("%sthe error is %v, want %v", subject(about), err, want)
	}
}

// NoError reports an error.
func NoError(t TB, err error, about ...any) {
	if err != nil {
		t.Helper()
		t.Errorf("%s%v", subject(about), err)
	}
}

// Returns takes what a function returns. The function that it returns reports an error, or a value that is not the
// wanted one:
//
//	assert.Returns(strconv.Atoi("7"))(t, 7)
func Returns[T comparable](got T, err error) func(t TB, want T, about ...any) {
	return func(t TB, want T, about ...any) {
		if err != nil || got != want {
			t.Helper()
			t.Errorf("%sgot %s and the error %v, want %s", subject(about), show(got), err, show(want))
		}
	}
}

// Fails takes what a function returns. The function that it returns reports an error that is not the wanted one, by
// errors.Is; nil: any error is wanted.
func Fails[T any](got T, err error) func(t TB, want error, about ...any) {
	return func(t TB, want error, about ...any) {
		if want == nil && err == nil || want != nil && !errors.Is(err, want) {
			t.Helper()
			t.Errorf("%sgot %s and the error %v, want the error %v", subject(about), show(got), err, want)
		}
	}
}

// subject is the beginning of a message.
func subject(about []any) string {
	if len(about) == 0 {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintln(about...), "\n") + ": "
}

// show is a value as a message has it.
func show(value any) string {
	switch value.(type) {
	case string, []byte, []string:
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%+v", value)
}
