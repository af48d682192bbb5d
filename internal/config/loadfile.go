//go:build !core

package config

// Load is LoadPatched without a patch.
func Load(path string, sets []string, environ []string) (*Config, error) {
	return LoadPatched(path, sets, environ, nil)
}
