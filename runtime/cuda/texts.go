//go:build cuda && linux

package cuda

import (
	"embed"
	"fmt"
)

// texts are the PTX that clang makes of kernels/*.c (kernels/generate.sh), for two targets.
//
//go:embed kernels/sm_75/*.ptx kernels/sm_80/*.ptx
var texts embed.FS

// text is the PTX of a module, NAME or NAME_TYPE, for a device of a compute capability (80 for 8.0).
func text(module string, arch int) (string, error) {
	target := "sm_75"
	if arch >= 80 {
		target = "sm_80"
	}
	raw, err := texts.ReadFile("kernels/" + target + "/" + module + ".ptx")
	if err != nil {
		return "", fmt.Errorf("there are no kernels %s for %s", module, target)
	}
	return string(raw), nil
}
