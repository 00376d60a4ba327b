"""Fragmentation: which host, and which of its devices, to use so that expected work suffers least.

A free device is worth what expected work can make of it. A GPU is of no use if the processors beside it are used up, if
a tenth of it is left and everybody asks for a half, or if nobody asks for its model. So a placement is judged by what
it does to that worth. Its ``cost`` has four parts, all in whole devices:

* the **gradient**: the increase, on average over expected work, in how much of the host's free devices that work cannot
  use (Weng et al., "Beware of Fragmentation", USENIX ATC 2023);
* the **offcut**: what is lost even if the rest of the device is filled optimally. Expected shares have prices, like the
  sizes in a cutting-stock problem (Gilmore and Gomory 1961), and a remainder is worth the best set that fits;
* the **scarcity** of the devices' kind: keeps work that accepts any kind off those that other work insists on;
* the **fit**: prefers the fullest host, other things being equal.

The first is the published policy; the other three are this library's own.
"""
