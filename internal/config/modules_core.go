//go:build core

package config

import "github.com/amble-crawler/amble/internal/engine/crawl"

// This program refuses settings that ask for a cluster or for URLFrontier, so nothing else of them is checked.

func checkModules(*checker) {}

func checkModulesTogether(*checker) {}

func (*URLFrontier) serve(*crawl.Options) {}
