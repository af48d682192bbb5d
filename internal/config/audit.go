package config

import (
	"time"

	"github.com/amble-crawler/amble/internal/requestlog"
)

// Audit bounds the request log, which amble audit reads.
type Audit struct {
	MaxSize ByteSize      `mapstructure:"max_size"` // of all its files; 0: no log is kept
	Keep    time.Duration `mapstructure:"keep"`     // of a file; 0: no limit
}

// RequestLogOptions are the options of internal/requestlog.
func (c *Config) RequestLogOptions() requestlog.Options {
	return requestlog.Options{MaxSize: int64(c.Audit.MaxSize), Keep: c.Audit.Keep}
}

// audit checks how much is kept of the request log.
func (k *checker) audit() {
	if size := k.c.Audit.MaxSize; size != 0 && (size < requestlog.MinSize || size > 1024*TiB) {
		k.reject("audit.max_size", "want 0, or 1MiB to 1024TiB")
	}
	between(k, "audit.keep", k.c.Audit.Keep, 0, 100*year)
}
