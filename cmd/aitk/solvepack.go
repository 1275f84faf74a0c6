package main

func (c *call) solvePack(path string, raw []byte) error { return nil }
