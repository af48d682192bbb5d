//go:build !unix

package main

func forbidDump() {}
