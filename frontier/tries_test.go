package frontier

import (
	"flag"
	"strconv"
	"testing"
)

// tries sets how many random cases rapid makes up in a test, where its flag and its variable say nothing.
func tries(t *testing.T, n int) {
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != "100" {
		return
	}
	set := func(n string) {
		if err := flag.Set(f.Name, n); err != nil {
			t.Fatal(err)
		}
	}
	set(strconv.Itoa(n))
	t.Cleanup(func() { set("100") })
}
