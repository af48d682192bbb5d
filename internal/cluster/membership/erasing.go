package membership

import "time"

// Erasing is an erasure of hosts from a cluster that is not done.
type Erasing struct {
	Name   string    `json:"name"`
	At     time.Time `json:"at"`
	Shards int       `json:"shards"`          // that have not carried it out
	Nodes  []string  `json:"nodes,omitempty"` // nodes that run and have not
}
