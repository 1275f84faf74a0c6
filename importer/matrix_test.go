package importer

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/ops.md anew")

// TestMatrixIsFresh compares docs/ops.md with what the table of lowerings says.
func TestMatrixIsFresh(t *testing.T) {
	var b strings.Builder
	if err := WriteMatrix(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("..", "docs", "ops.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Error("docs/ops.md is not what `aitk ops --onnx` prints: go test ./importer -run TestMatrixIsFresh -update")
	}
}

// TestMatrixHasAll: the operators that a training needs, and nothing imported without a word on its gradient.
func TestMatrixHasAll(t *testing.T) {
	rows := map[string]*OpSupport{}
	for _, s := range Matrix() {
		rows[s.Domain+"/"+s.Op] = &s
		if s.Imported() == (s.Grad == "") || s.Imported() == (s.Ref == "") || s.Imported() == (s.CPU == "") {
			t.Errorf("%+v", s)
		}
	}
	for _, name := range strings.Fields(`Constant ConstantOfShape Shape Size Cast CastLike Identity Reshape Transpose Unsqueeze Squeeze Flatten Concat Split
		Slice Gather Expand Tile Add Sub Mul Div Neg Abs Sqrt Exp Log Reciprocal Pow MatMul Gemm Conv MaxPool AveragePool GlobalAveragePool BatchNormalization
		LayerNormalization Relu Sigmoid Tanh Erf Gelu Softmax LogSoftmax Clip Dropout ReduceSum ReduceMean Where Equal Less Greater LessOrEqual GreaterOrEqual
		And Or Not Xor Range SoftmaxCrossEntropyLoss NegativeLogLikelihoodLoss
		Sin Cos Trilu InstanceNormalization GroupNormalization RMSNormalization RotaryEmbedding Attention Swish SwiGLU HardSwish HardSigmoid LeakyRelu PRelu Elu
		Selu Celu Softplus Softsign Mish ThresholdedRelu ReduceMax ReduceMin ReduceL2 ReduceL1 ReduceLogSumExp ReduceSumSquare ReduceLogSum ReduceProd Max Min Sum
		Mean Pad Resize Upsample ConvTranspose GlobalMaxPool GatherElements GatherND ScatterElements ScatterND TopK CumSum Einsum DepthToSpace SpaceToDepth OneHot
		ArgMax ArgMin IsNaN IsInf Floor Ceil Round Sign Mod LSTM GRU RNN QuantizeLinear DequantizeLinear DynamicQuantizeLinear MatMulInteger ConvInteger
		QLinearMatMul QLinearConv LRN LpNormalization MeanVarianceNormalization If`) {
		if s := rows["/"+name]; s == nil || !s.Imported() {
			t.Errorf("%s is not imported", name)
		}
	}
}
