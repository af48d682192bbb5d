package politeness

import "time"

// LastEnd is when the last request to the host ended; zero if none is known of.
func (h *Host) LastEnd() time.Time { return h.pace.end }
