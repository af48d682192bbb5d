// Package cluster decides which node crawls which shard.
package cluster
