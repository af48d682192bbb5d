package command

import (
	"testing"

	"github.com/amble-crawler/amble/internal/modules/identity"
	"github.com/amble-crawler/amble/internal/testing/assert"
)

// TestSummary: the line of the status sums up all origins.
func TestSummary(t *testing.T) {
	got := summary([]identity.OriginAnswers{
		{Unsigned: identity.Answers{Served: 2, Refused: 3}, Signed: identity.Answers{Served: 1200, Refused: 1}},
		{Unsigned: identity.Answers{Refused: 4}, Signed: identity.Answers{Refused: 5}},
	})
	want := "1 of 2 origins that refused or asked serve signed requests; requests signed: 1,200 served, 6 refused; " +
		"not signed: 2 served, 7 refused"
	assert.Equal(t, got, want)
}
