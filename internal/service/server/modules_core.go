//go:build core

package server

import "github.com/danielgtaylor/huma/v2"

// Leases is empty: this program lends no pages to fetchers outside of it.
type Leases any

// leasesAPI registers nothing.
func leasesAPI(*Server, huma.API) {}

// URLCommands is empty: this program changes no URLs that are in the database by a command.
type URLCommands any

// DividedCommands is empty, as URLCommands is.
type DividedCommands any

// urlCommandsAPI registers nothing.
func urlCommandsAPI(*Server, huma.API) {}
