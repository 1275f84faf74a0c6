package main

// Values of others, in percent of overhead; none: not published. Sources: MOCCASIN (Bartan et al., ICML 2023, arXiv 2304.14463) with its Checkmate rows (Jain et
// al., MLSys 2020), the smaller of the two; FastSA (Preferred Networks), table 1; the reference is a prototype of one thread, measured on two shared cores.

const none = -1

// fixedRow is a budget of a public graph in its own order.
type fixedRow struct {
	permille                    int64
	published, reference, bound float64 // the last two of the reference
}

// fixedGraph is a public graph and its rows.
type fixedGraph struct {
	name, file string
	rows       []fixedRow
}

func fixedGraphs() []fixedGraph {
	cnn := func(values ...[2]float64) (rows []fixedRow) {
		for k, v := range values {
			rows = append(rows, fixedRow{[]int64{900, 800, 700, 600, 500, 400, 300, 250}[k], none, v[0], v[1]})
		}
		return rows
	}
	with := func(rows []fixedRow, published ...float64) []fixedRow {
		for k, p := range published {
			rows[k].published = p
		}
		return rows
	}
	no := [2]float64{none, none} // infeasible, said to be so
	return []fixedGraph{
		{"RL1", "RL1.json", []fixedRow{{900, 0.8, .789, .469}, {800, 2.3, 2.296, 1.520}, {700, none, 6.39, 3.892}}},
		{"RL2", "RL2.json", []fixedRow{{900, 0.9, .904, .690}, {800, 4.9, 4.261, 2.737}, {700, none, none, 7.17}}},
		{"RL3", "RL3.json", []fixedRow{{900, 0.7, .701, .664}, {800, 3.4, 3.12, 2.121}}},
		{"RL4", "RL4.json", []fixedRow{{900, 0.7, .689, .181}, {800, 3.4, 2.722, .787}, {700, none, 7.23, 1.832}}},
		{"CM1 FCN8", "CM1_fcn8.json", with(cnn([2]float64{.029, .029}, [2]float64{.136, .136}, [2]float64{.891, .891}, no), 0.0, 0.1)},
		{"CM2 ResNet50", "CM2_resnet50.json", with(cnn([2]float64{.108, .108}, [2]float64{.279, .279}, [2]float64{.564, .564}, [2]float64{.963, .963}, [2]float64{1.506, 1.499},
			[2]float64{2.251, 2.193}, [2]float64{3.811, 3.327}, [2]float64{4.992, 4.085}), 0.1, 0.3)},
		{"MobileNet", "MN_mobilenet.json", cnn([2]float64{.163, .163}, [2]float64{.370, .370}, [2]float64{.626, .626}, [2]float64{1.067, 1.067}, [2]float64{1.635, 1.635},
			[2]float64{2.462, 2.363}, [2]float64{3.980, 3.517}, [2]float64{5.331, 4.408})},
		{"U-Net", "UN_unet.json", cnn([2]float64{1.129, 1.129}, [2]float64{1.984, 1.984}, [2]float64{2.967, 2.967}, [2]float64{4.451, 4.451}, [2]float64{6.967, 6.370}, [2]float64{13.11, 10.74}, no, no)},
		{"SegNet", "SN_segnet.json", cnn([2]float64{.103, .103}, [2]float64{.207, .207}, [2]float64{.311, .311}, [2]float64{.423, .423}, [2]float64{40.660, 40.660}, no)},
		{"VGG16", "V16_vgg16.json", cnn([2]float64{1.968, 1.968}, no)},
		{"VGG19", "V19_vgg19.json", cnn([2]float64{.104, .104}, [2]float64{2.756, 2.702}, no)},
	}
}

// freeRow is a budget of a public graph in any order.
type freeRow struct {
	file              string
	permille          int64
	fastSA, reference float64
	missed            bool // FastSA's plan exceeds the budget
}

func freeRows() []freeRow {
	return []freeRow{
		{"RL1", 900, 0, 0, false}, {"RL1", 800, .3, 1.73, false}, {"RL1", 700, 2.2, 4.41, true},
		{"RL2", 900, 0, 0, false}, {"RL2", 800, 0, 0, false}, {"RL2", 700, 2.6, .566, false},
		{"RL3", 900, .03, .042, false}, {"RL3", 800, 2.3, 1.30, false}, {"RL3", 700, 4.8, 4.83, true},
		{"RL4", 900, .4, .136, false}, {"RL4", 800, 2.5, 1.79, false}, {"RL4", 700, 7.4, 5.18, false},
	}
}

// stepRow is a budget of a generated training step.
type stepRow struct {
	blocks           int64
	explicit         bool
	permille         int64
	reference, bound float64 // LB2 where the reference has it, else LB1
}

func stepRows() []stepRow {
	return []stepRow{
		{12, true, 900, 1.049, 1.006}, {12, true, 700, 5.413, 5.117}, {12, true, 500, 10.202, 9.829}, {12, true, 300, 16.61, 15.905}, {12, true, 200, 21.48, 20.615},
		{12, false, 900, .966, .840}, {12, false, 700, 2.980, 2.963}, {12, false, 500, 8.630, 8.229}, {12, false, 300, 14.78, 13.684}, {12, false, 200, 18.87, 17.214},
		{48, true, 900, 1.039, 1.023}, {48, true, 700, 5.119, 4.570}, {48, true, 500, 10.08, 8.586}, {48, true, 300, 16.19, 13.47}, {48, true, 200, 19.70, 15.95},
		{200, true, 700, 5.056, 4.567}, {200, true, 500, 10.05, 8.596}, {200, true, 300, 16.14, 13.475},
	}
}

// jointRow is a budget of twelve blocks with the reference's joint bounds at 12, 25 and 50 GB/s.
type jointRow struct {
	explicit bool
	permille int64
	bounds   [3]float64
}

func jointRows() []jointRow {
	return []jointRow{
		{true, 700, [3]float64{3.81, 3.05, 1.62}}, {true, 500, [3]float64{7.75, 6.97, 5.53}}, {true, 300, [3]float64{12.5, 11.5, 9.8}},
		{false, 700, [3]float64{2.06, 1.37, .14}}, {false, 500, [3]float64{4.34, 3.38, 1.98}}, {false, 300, [3]float64{9.5, 7.3, 4.2}},
	}
}

// capacityRow is an instance of minimalloc's challenging suite: seconds of its source built on the reference's machine, of its paper (Moffitt, ASPLOS 2023),
// and of the reference.
type capacityRow struct {
	name                         string
	minimalloc, paper, reference float64
}

func capacityRows() []capacityRow {
	return []capacityRow{
		{"A", 4.45, 4.910, .032}, {"B", 3.30, 3.661, .001}, {"C", .59, .637, .014}, {"D", 2.40, 2.674, .121}, {"E", 3.16, 3.717, .031}, {"F", 4.42, 5.358, .001},
		{"G", .93, 1.181, .013}, {"H", 1.46, 1.808, .011}, {"I", 3.40, 3.908, .158}, {"J", .85, .883, .017}, {"K", .51, .628, .024},
	}
}

// traceRow is a trace of idealloc's: arena over bound of idealloc (Lamprakos et al., arXiv 2504.04874), with its seconds, and of the reference.
type traceRow struct {
	file                         string
	idealloc, seconds, reference float64
}

func traceRows() []traceRow {
	return []traceRow{{"resnet50", 1.0050, .9, 1}, {"G_1", 1.0028, .03, 1}, {"pangu_2.6B", 1.0230, 5.9, 1.00379}, {"S_1", 1.0293, 8.6, 1}, {"Y_1", 1.0036, 41.7, 1}}
}
