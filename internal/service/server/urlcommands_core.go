//go:build core

package server

import "github.com/danielgtaylor/huma/v2"

// URLCommands is empty: this program changes no URLs that are in the database by a command.
type URLCommands any

// DividedCommands is empty, as URLCommands is.
type DividedCommands any

// urlCommandsAPI registers nothing.
func urlCommandsAPI(*Server, huma.API) {}
