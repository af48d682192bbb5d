//go:build !core

package main

import (
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/modules/operator"
)

// operatorModules are the commands by which an operator looks at a crawl and changes it, with what other modules add.
func operatorModules(parts operator.Parts) (list []module) {
	list = append(list, module{
		quickStart: `  amble config check                          is ./config.yaml correct?
  amble robots check --robots https://example.com/robots.txt https://example.com/a
                                              may this URL be fetched, and which line says so?
`,
		example: `amble status                                what is the state of the crawl?
  amble hosts www.example.com                 what is known of a host, and why does it wait?
  amble urls --state failed                   which URLs failed, and why?
  amble retry --state failed                  request them again`,
	})
	for _, makes := range operator.Commands() {
		list = append(list, module{command: func(settings *access.Settings) *cobra.Command {
			return makes(&operator.Program{Settings: settings, Parts: parts})
		}})
	}
	return list
}
