package weburl

import "testing"

// FuzzParse checks that both paths agree, that a canonical form is its own, and that its parts fit
// together.
func FuzzParse(f *testing.F) {
	for _, test := range parseCases {
		f.Add(test.raw)
	}
	for _, test := range hostCases {
		f.Add("http://" + test.raw + "/")
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if u, err := sameAsFull(t, URL{}, raw); err == nil {
			checkInvariants(t, u)
		}
	})
}

// FuzzResolve checks the same for references.
func FuzzResolve(f *testing.F) {
	for _, test := range resolveCases {
		f.Add(test.base, test.ref)
	}
	for _, test := range parseCases {
		f.Add("https://h/a/b?c", test.raw)
	}
	f.Fuzz(func(t *testing.T, rawBase, ref string) {
		base, err := Parse(rawBase)
		if err != nil {
			return
		}
		if u, err := sameAsFull(t, base, ref); err == nil {
			checkInvariants(t, u)
		}
	})
}
