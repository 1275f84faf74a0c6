// Command ptxc translates a PTX file into the shared library that the fake driver loads: ptxc in.ptx out.so. The fake calls it for texts that are
// not in its cache; what it prints goes into the caller's error log.
package main

import (
	"fmt"
	"os"

	"aitk/internal/fakecuda"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Println("usage: ptxc in.ptx out.so")
		os.Exit(2)
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = fakecuda.Translate(string(text), os.Args[2])
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
