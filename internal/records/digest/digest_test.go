package digest

import (
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestDigest(t *testing.T) {
	d := Of([]byte("hello"))
	assert.Equal(t, d.String(), "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")
	assert.Returns(Parse(d.String()))(t, d, "back")
	for _, bad := range []string{"", "sha256:", "sha256:2cf2", "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N",
		"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"} {
		assert.Fails(Parse(bad))(t, Err, bad)
	}
}
