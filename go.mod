module aitk

go 1.26
