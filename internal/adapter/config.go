package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// The files of a folder that PEFT writes.
const (
	peftFile   = "adapter_model.safetensors"
	configFile = "adapter_config.json"
)

// readConfig reads what PEFT wrote beside the adapters at path; nil where there is nothing or path is no file of PEFT's.
func readConfig(path string) (*config, error) {
	if filepath.Base(path) != peftFile {
		return nil, nil
	}
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(path), configFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &config{}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, fmt.Errorf("%s: %w", configFile, err)
	}
	return c, nil
}

// alpha is the alpha of a module whose file has none: the rank if there is no config either. With use_rslora the factor is alpha/sqrt(rank).
func (c *config) alpha(module string, rank int64) float64 {
	if c == nil || c.Alpha == 0 {
		return float64(rank)
	}
	alpha, longest := c.Alpha, -1
	for pattern, a := range c.AlphaPattern { // PEFT takes a pattern for the end of a name, from a dot on
		if (module == pattern || strings.HasSuffix(module, "."+pattern)) && len(pattern) > longest {
			alpha, longest = a, len(pattern)
		}
	}
	if c.RSLoRA {
		alpha *= math.Sqrt(float64(rank))
	}
	return alpha
}
