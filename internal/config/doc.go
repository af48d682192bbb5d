// Package config turns the settings of a crawl into the Options of each package.
//
// A setting has a name such as politeness.delay and may be given in four places, in order of
// increasing strength: the defaults, a YAML file, the environment (AMBLE_POLITENESS_DELAY=2s) and
// --set flags (politeness.delay=2s). viper lays these on top of each other; this is the only package
// that knows of it. The file is read through YAML nodes, so that every problem is reported
// with its line, and all of them at once.
//
// The shipped config.yaml is the reference of all settings. A test holds it equal to Default.
package config
