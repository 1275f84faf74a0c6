package passes_test

import (
	"reflect"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/passes"
)

// Whatever parses prints in a form that parses to the same.
func TestSpecs(t *testing.T) {
	for _, c := range []struct{ key, text, want string }{ // want: canonical form, or ! and a part of the error
		{"loss", "cross-entropy", "cross-entropy"},
		{"loss", "cross-entropy:axis=-1, shift=1,label-smoothing=0.10,ignore-index=-100,reduction=sum", "cross-entropy:axis=-1,shift=1,label-smoothing=0.1,ignore-index=-100,reduction=sum"},
		{"loss", "cross-entropy:ignore-index=none", "cross-entropy"},
		{"loss", "huber", "huber"},
		{"loss", "huber:delta=0.25", "huber:delta=0.25"},
		{"loss", "output", "output"},
		{"loss", "output:model/loss:0", "output:model/loss:0"},
		{"loss", "nll:shift=0", "nll"},
		{"loss", "mse:delta=1", "!unknown setting delta: mse knows reduction"},
		{"loss", "nll:label-smoothing=0.1", "!unknown setting label-smoothing"},
		{"loss", "crossentropy", "!want one of cross-entropy, mse"},
		{"loss", "huber:delta=nan", "!delta=nan: want a number > 0"},
		{"loss", "huber:delta", "!not of the form key=value"},
		{"loss", "huber:delta=1,delta=2", "!given twice"},
		{"loss", "", "!want one of"},
		{"optimizer", "sgd", "sgd:lr=0.01,momentum=0,dampening=0,weight-decay=0"},
		{"optimizer", "sgd:lr=0.5,momentum=0.9,nesterov=true", "sgd:lr=0.5,momentum=0.9,dampening=0,nesterov=true,weight-decay=0"},
		{"optimizer", "adam", "adam:lr=0.001,beta1=0.9,beta2=0.999,eps=1e-08,weight-decay=0"},
		{"optimizer", "adamw:beta2=0.95", "adamw:lr=0.001,beta1=0.9,beta2=0.95,eps=1e-08,weight-decay=0.01"},
		{"optimizer", "adam:beta1=1", "!beta1=1: want a number in [0,1)"},
		{"optimizer", "adam:lr=inf", "!lr=inf"},
		{"optimizer", "lion", "!want one of sgd, adam, adamw"},
		{"clip-norm", "0", "!want a number > 0"},
		{"accumulate", "0", "!want a whole number >= 1"},
		{"grad-results", "maybe", "!want true or false"},
		{"lora", "*attn*", "*attn*:rank=16,alpha=16"},
		{"lora", "net:layer:0.*:rank=4,alpha=8,dropout=0.1,rslora=1,init=a:b.safetensors", "net:layer:0.*:rank=4,alpha=8,dropout=0.1,rslora=true,init=a:b.safetensors"},
		{"lora", "*:rank=0", "*:rank=0,alpha=16"},
		{"lora", "*:init=a.safetensors", "*:init=a.safetensors"},
		{"lora", "*:alpha=2,init=a.safetensors", "*:alpha=2,init=a.safetensors"},
		{"lora", "*:alpha=0", "!alpha=0: want a number other than 0"},
		{"lora", "*:dropout=1", "!dropout=1: want a number of at least 0 and below 1"},
		{"lora", ":rank=1", "!the glob is missing"},
		{"lora", "*:rank=2,init=", "!init= names no file"},
		{"quantize", "*:int8", "*:int8"},
		{"quantize", "a:b:nf4,block=32,double=true", "a:b:nf4,block=32,double=true"},
		{"quantize", "*:int4", "*:int4,block=64"},
		{"quantize", "auto", "*:auto,max-error=0.05,block=64"},
		{"quantize", "auto:max-error=0.1", "*:auto,max-error=0.1,block=64"},
		{"quantize", "auto:int8", "auto:int8"},
		{"quantize", "x*:auto,max-error=0.2,double=true", "x*:auto,max-error=0.2,block=64,double=true"},
		{"quantize", "*:none", "*:none"},
		{"quantize", "*:int8,block=64", "!unknown setting block"},
		{"quantize", "*:auto,max-error=0", "!max-error=0: want a relative error above 0"},
		{"quantize", "*", "!want GLOB:FORMAT"},
		{"seed", "-3", "-3"},
		{"seed", "x", "!want a whole number"},
		{"budget", "60%", "!no pass has a setting"},
	} {
		var o, again passes.Options
		err := o.Set(c.key, c.text)
		if part, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), part) || ir.KindOf(err) != ir.Usage {
				t.Errorf("%s %q: got %v, want %q", c.key, c.text, err, part)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %q: %v", c.key, c.text, err)
			continue
		}
		s := o.Settings()
		if len(s) != 1 || s[0].Value != c.want {
			t.Errorf("%s %q prints as %v, want %q", c.key, c.text, s, c.want)
			continue
		}
		if err := again.Set(s[0].Key, s[0].Value); err != nil || !reflect.DeepEqual(o, again) {
			t.Errorf("%s %q does not come back: %v", c.key, s[0].Value, err)
		}
	}
}
