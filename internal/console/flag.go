package console

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Complete completes a flag of a command. It panics if there is no such flag.
func Complete(command *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of a flag that does not exist: %v", err))
	}
}
