package cpu

import "syscall"

// memoryBytes is the machine's memory, 0 where it is not known.
func memoryBytes() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit))
}

// adviseHuge asks for large pages; arenas are few and large. A refusal costs speed only.
func adviseHuge(raw []byte) {
	const advHugePage = 14 // MADV_HUGEPAGE
	_ = syscall.Madvise(raw, advHugePage)
}
