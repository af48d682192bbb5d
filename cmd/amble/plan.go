//go:build !core

package main

import (
	"github.com/amble-crawler/amble/internal/modules/plan"
	plancommand "github.com/amble-crawler/amble/internal/modules/plan/command"
)

// planModule forecasts the recrawls.
func planModule() module {
	return module{operations: plan.Register, command: plancommand.New,
		example: "amble plan                                  what is recrawled, and how fresh are the copies?"}
}
