package importer

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// OpSupport is a row of the matrix of ONNX operators: what the importer makes of one, and what becomes of its gradient.
type OpSupport struct {
	Domain   string  `json:"domain"` // empty for ai.onnx
	Op       string  `json:"op"`
	Versions []int64 `json:"opsets"`          // opsets in which its meaning or types changed, from 7 on; empty for com.microsoft, which has but one
	Until    int64   `json:"until,omitempty"` // opset that removed it; 0: none
	Import   string  `json:"import"`          // "yes", "yes: " and a limit, "no: " and the reason
	Grad     string  `json:"grad,omitempty"`  // "yes", "yes: " and how, "none: " and the reason; empty where it is not imported
	Ref      string  `json:"ref,omitempty"`
	CPU      string  `json:"cpu,omitempty"` // "yes" where it is imported: every core op has a meaning and a kernel, which tests of its own hold it to
}

// Imported tells whether there is a lowering.
func (s *OpSupport) Imported() bool { return !strings.HasPrefix(s.Import, "no") }

// Matrix lists the operators of ai.onnx and its previews, in alphabetical order, then those of com.microsoft that are read.
func Matrix() []OpSupport {
	var rows []OpSupport
	for _, o := range onnxOps() {
		rows = append(rows, support(o.domain, o.name, o.since, o.until))
	}
	for _, name := range msftOps() {
		rows = append(rows, support("com.microsoft", name, nil, 0))
	}
	return rows
}

func support(domain, name string, versions []int64, until int64) OpSupport {
	s := OpSupport{Domain: domain, Op: name, Versions: versions, Until: until, Import: "yes", Grad: "yes", Ref: "yes", CPU: "yes"}
	if lowererOf(domain, name) == nil {
		s.Import, s.Grad, s.Ref, s.CPU = "no: "+whyNot(domain, name), "", "", ""
		return s
	}
	if limit := importLimit(name); limit != "" {
		s.Import = "yes: " + limit
	}
	if why := noGradient(name); why != "" {
		s.Grad = "none: " + why
	} else if how := gradientRule(name); how != "" {
		s.Grad = "yes: " + how
	}
	return s
}

// whyNot says why an operator has no lowering.
func whyNot(domain, name string) string {
	switch {
	case strings.HasPrefix(name, "String") || name == "RegexFullMatch" || name == "TfIdfVectorizer":
		return "strings"
	case name == "ImageDecoder":
		return "a decoder of image files belongs before the model"
	case domain == "ai.onnx.preview.training" && name == "Gradient":
		return "gradients are made from the forward graph"
	case strings.HasPrefix(name, "Sequence") || strings.HasPrefix(name, "Optional"):
		return "sequences and optionals exist only where a constant takes a tensor out of them"
	}
	switch name {
	case "MaxRoiPool":
		return "bins of which the extent is the content of an input; RoiAlign is imported"
	case "MatMulBnb4":
		return "4-bit floats of another packing; MatMulNBits is imported"
	}
	return "no lowering"
}

// importLimit says what must be known, or is bounded, for an operator to be lowered.
func importLimit(name string) string {
	switch name {
	case "If":
		return "the condition must be known"
	case "Loop", "Scan":
		return fmt.Sprintf("a known number of turns, at most %d", maxSteps)
	case "LSTM", "GRU", "RNN", "LinearAttention", "CumProd":
		return fmt.Sprintf("unrolled, at most %d steps", maxSteps)
	case "NonZero", "Unique", "NonMaxSuppression":
		return "known content only"
	case "Compress":
		return "the condition must be known"
	case "BitCast":
		return "known content, or integers of one width"
	case "Det":
		return "up to 6 x 6"
	case "RoiAlign":
		return "without sampling_ratio the regions must be known"
	case "GroupQueryAttention":
		return "no cache, or a full one"
	case "MultiHeadAttention", "Attention":
		return ""
	case "Range", "OneHot", "Reshape", "Expand", "Tile", "Slice", "Pad", "Resize", "Upsample", "ConstantOfShape", "TopK":
		return "what decides shapes must be known"
	}
	if strings.Contains(name, "Sequence") && name != "ReverseSequence" || strings.HasPrefix(name, "Optional") {
		return "within the graph, followed while importing"
	}
	return ""
}

// noGradient says why no gradient flows through an operator.
func noGradient(name string) string {
	switch name {
	case "Constant", "ConstantOfShape", "Shape", "Size", "Range", "EyeLike", "SequenceLength", "SequenceEmpty", "HannWindow", "HammingWindow", "BlackmanWindow",
		"MelWeightMatrix":
		return "no operand that it varies with"
	case "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial":
		return "random"
	case "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf", "OptionalHasElement":
		return "boolean result"
	case "ArgMax", "ArgMin", "NonZero", "NonMaxSuppression", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitCast":
		return "integer result"
	case "Floor", "Ceil", "Round", "Sign", "Hardmax":
		return "piecewise constant; on the way to a trained weight it is reported"
	case "Unique":
		return "known content is constant"
	case "MatMulInteger", "ConvInteger":
		return "integer result"
	}
	return ""
}

// gradientRule says what is particular about a gradient.
func gradientRule(name string) string {
	switch name {
	case "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearMatMul", "QLinearConv", "QLinearAdd", "QLinearMul", "QLinearSigmoid",
		"QLinearLeakyRelu", "QLinearGlobalAveragePool", "QLinearConcat", "MatMulIntegerToFloat", "DynamicQuantizeMatMul":
		return "straight through the rounding of what the graph quantizes; what the file has quantized is frozen"
	case "Cast", "CastLike":
		return "between floats; straight through 8-bit floats"
	case "Clip":
		return "1 inside and on the bounds, 0 outside"
	case "Mod":
		return "the quotient is held fixed"
	case "ReduceMax", "ReduceMin", "GlobalMaxPool", "Max", "Min":
		return "shared among elements that tie"
	case "MaxPool":
		return "to the first greatest element"
	case "TopK":
		return "to the elements taken"
	case "If":
		return "through the branch taken"
	case "BatchNormalization":
		return "not to running statistics"
	case "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "Scatter", "OneHot", "Where", "Compress":
		return "not to indices and conditions"
	case "GridSample", "RoiAlign", "DeformConv":
		return "to the image, and through the weights to the places"
	}
	return ""
}

// msftOps lists the operators of com.microsoft that have a lowering.
func msftOps() []string {
	return []string{"Attention", "BiasAdd", "BiasGelu", "BiasSplitGelu", "DequantizeLinear", "DynamicQuantizeMatMul", "EmbedLayerNormalization", "FastGelu", "FusedConv",
		"FusedGemm", "FusedMatMul", "Gelu", "GroupNorm", "GroupQueryAttention", "MatMulBnb4", "MatMulIntegerToFloat", "MatMulNBits", "MultiHeadAttention", "NhwcConv",
		"QLinearAdd", "QLinearConcat", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QuantizeLinear", "QuickGelu", "RotaryEmbedding",
		"SimplifiedLayerNormalization", "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "TransposeMatMul", "Trilu"}
}

// WriteMatrix writes the matrix as docs/ops.md has it.
func WriteMatrix(w io.Writer) error {
	rows := Matrix()
	imported, differentiable := 0, 0
	for i := range rows {
		if rows[i].Imported() {
			imported++
		}
		if strings.HasPrefix(rows[i].Grad, "yes") {
			differentiable++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# ONNX operators

Made by `+"`aitk ops --onnx`"+`; a test keeps this file equal to what it prints.

Of %d operators %d are imported, at every opset from %d to %d, and %d have a gradient. The opsets are those in which an operator's meaning or types
changed; in between it stays what it was. "Known" means: computed from constants, shapes and inputs bound to constants.

An operator is lowered to core ops (`+"`aitk ops`"+` lists them), each of which has a meaning in the reference interpreter (ref) and a kernel (cpu).

| operator | opsets | import | grad | ref | cpu |
| --- | --- | --- | --- | --- | --- |
`, len(rows), imported, minOpset, newestOpset, differentiable)
	for i := range rows {
		s := &rows[i]
		var versions []string
		for _, v := range s.Versions {
			versions = append(versions, strconv.FormatInt(v, 10))
		}
		if s.Until > 0 {
			versions = append(versions, fmt.Sprintf("until %d", s.Until-1))
		}
		name := s.Op
		if s.Domain != "" {
			name = s.Domain + "." + s.Op
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", name, strings.Join(versions, ", "), s.Import, s.Grad, s.Ref, s.CPU)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
