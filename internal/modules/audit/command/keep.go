//go:build !core

package command

import (
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/amble-crawler/amble/internal/modules/audit"
	"github.com/amble-crawler/amble/internal/modules/audit/receipts"
)

// interval is the time between two heads.
const interval = time.Hour

// Keep signs heads of all request logs below a data directory: at the begin, once an hour, and at the end. stop ends
// that. It does nothing if sign is nil.
func Keep(dataDir string, sign receipts.Sign, now func() time.Time, log *slog.Logger) (stop func()) {
	if sign == nil {
		return func() {}
	}
	done := make(chan struct{})
	var keeping sync.WaitGroup
	once := func() {
		logs, err := audit.Logs([]string{dataDir})
		for _, group := range logs {
			for _, dir := range group {
				if _, failed := receipts.Append(dir, now(), sign); failed != nil && !os.IsNotExist(failed) {
					err = failed
				}
			}
		}
		if err != nil {
			log.Warn("the request log could not be signed", "error", err)
		}
	}
	once()
	keeping.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				once()
			}
		}
	})
	return func() {
		close(done)
		keeping.Wait()
		once()
	}
}
