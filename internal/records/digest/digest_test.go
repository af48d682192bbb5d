package digest

import (
	"errors"
	"testing"
)

func TestDigest(t *testing.T) {
	d := Of([]byte("hello"))
	if got, want := d.String(), "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if back, err := Parse(d.String()); back != d || err != nil {
		t.Errorf("back: %s, %v", back, err)
	}
	for _, bad := range []string{"", "sha256:", "sha256:2cf2", "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N",
		"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"} {
		if _, err := Parse(bad); !errors.Is(err, Err) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
