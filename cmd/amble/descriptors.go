package main

import (
	"fmt"

	"github.com/amble-crawler/amble/internal/crawl"
)

// checkDescriptors compares how many files this process may have open with what a crawl needs. It
// warns where connections will be given up early, and fails where workers would have to wait for one
// another.
func checkDescriptors(limit int, o *crawl.Options, warn func(text string)) error {
	least, full := o.Descriptors()
	may := fmt.Sprintf("this process may have %d files and connections open, and %d workers", limit, o.Workers)
	raise := fmt.Sprintf("raise the limit (ulimit -n %d, or LimitNOFILE=%d of a service)", full, full)
	switch {
	case limit < least:
		return exit(exitUsage, fmt.Errorf("%s need %d at least: %s, or lower crawl.workers", may, least, raise))
	case limit < full:
		warn(fmt.Sprintf("%s may take %d: fewer connections are kept between requests; %s", may, full, raise))
	}
	return nil
}
