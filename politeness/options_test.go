package politeness

import (
	"errors"
	"math"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestOptionsValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Options)
		want   []string // names in the message; none: valid
	}{
		{"defaults", func(*Options) {}, nil},
		{"no delay at all", func(o *Options) { o.Delay, o.PerHost = 0, 100 }, nil},
		{"adaptive", func(o *Options) { o.AdaptiveFactor = 2.5 }, nil},
		{"delay", func(o *Options) { o.Delay = -1 }, []string{"delay is -1ns"}},
		{"factor", func(o *Options) { o.AdaptiveFactor = -1 }, []string{"adaptive_factor is -1"}},
		{"factor NaN", func(o *Options) { o.AdaptiveFactor = math.NaN() }, []string{"adaptive_factor is NaN"}},
		{"factor infinite", func(o *Options) { o.AdaptiveFactor = math.Inf(1) }, []string{"adaptive_factor is +Inf"}},
		{"a factor that can do nothing", func(o *Options) { o.AdaptiveFactor, o.AdaptiveMax = 1, 0 },
			[]string{"adaptive_max is 0s"}},
		{"all at once", func(o *Options) { *o = Options{Delay: -1, AdaptiveMax: -1, IPDelay: -1} },
			[]string{"delay is", "adaptive_max is", "per_host is 0", "per_ip is 0", "ip_delay is"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := DefaultOptions()
			tt.change(&o)
			err := o.Validate()
			must.True(t, (err != nil) == (len(tt.want) > 0) && (err == nil || errors.Is(err, ErrOption)), "got %v", err)
			for _, want := range tt.want {
				assert.Contains(t, err.Error(), want, err, "does not say")
			}
		})
	}
}
