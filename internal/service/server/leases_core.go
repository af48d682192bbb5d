//go:build core

package server

import "github.com/danielgtaylor/huma/v2"

// Leases is empty: this program lends no pages to fetchers outside of it.
type Leases any

// leasesAPI registers nothing.
func leasesAPI(*Server, huma.API) {}
