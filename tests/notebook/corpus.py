"""Cells that a plain shell runs, for comparing magic cells with it. Each starts with a line `## name`."""

from __future__ import annotations

import re


def _cells(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)[1:]
    return {name: body[:-2] for name, body in zip(parts[::2], parts[1::2], strict=True)}


PYTHON = _cells(
    r"""
## assignment
a = 1
b = a + 1

## last expression
a = 3
a * 2

## semicolon
a = 3
a * 2;

## semicolon and comment
a = 3
a * 2;  # hidden

## none is not shown
None

## expression before the last
1 + 1
a = 2

## expression in a block
if True:
    5

## nested functions
n = 3
def outer():
    def inner(v):
        return v * n
    return [inner(k) for k in range(3)]
r = outer()

## recursion
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
fact(5)

## comprehension sees cell names
k = 2
r = [k * j for j in range(3) if j < k]
d = {j: k for j in range(2)}

## class scope
f = 2
class Box:
    g = f
    def get(self):
        return Box.g + f
r = Box().get()

## late binding
s = 1
later = lambda: s
s = 5
r = later()

## with and loop variables
import contextlib
with contextlib.nullcontext(4) as w:
    for i in range(3):
        pass

## del
a = 1
b = 2
del a

## imports
import os.path as p
from math import *
r = sqrt(16)

## global statement
def f():
    global made
    made = 7
f()

## walrus
[y := 4, y + 1]

## star assignment
a, *b = [1, 2, 3]

## annotations
x: int = 3
y: str
r = __annotations__

## future import
from __future__ import annotations
def f(a: nowhere): pass
r = f.__annotations__

## try
try:
    1 / 0
except ZeroDivisionError as e:
    r = str(e)
finally:
    s = 1

## decorator
def twice(f):
    return lambda v: f(f(v))
@twice
def up(v):
    return v + 1
r = up(1)

## print
print('one')
print('two', end='')

## display
display(3)
display('x')

## multi-line string
t = '''a
  b
'''
t

## line magic
x = 5
%who_ls int

## assigned magic
r = %pwd
r = type(r).__name__

## shell command
!echo hello

## assigned shell
r = !printf 'a\nb'
r = list(r)

## magic in a block
for i in range(2):
    %time pass

## help syntax
import math

## nested cell magic
%%capture cap
print('inside')
z = 1

## timed
%%time
z = 4
z + 1

## indented
    a = 1
    b = 2

## blank lines


a = 1

a

## only a comment
# nothing

## unicode
größe = 'ä'
größe

## underscore
_ = 3
_

## input history
len(In) > 0

## raises
a = 1
raise ValueError('no')
b = 2

## raises in a function
def f(v):
    return v / missing
a = 1
b = f(a)

## raises in a block
a = []
for i in range(5):
    a.append(i)
    if i == 2:
        raise KeyError(i)

## chained
try:
    1 / 0
except ZeroDivisionError as e:
    raise ValueError('second') from e

## exit
import sys
a = 1
sys.exit('stop')
b = 2

## syntax error
a = 1
x = (1 +

## syntax error in a string
a = 'x

## indentation error
if True:
a = 1

## return at top
a = 1
return 5
b = 2

## break at top
a = 1

break

## await in a plain function
a = 1
def f():
    await g()

## unknown magic
a = 1
%nosuchmagic
b = 2

## await
import asyncio
r = await asyncio.sleep(0, 7)
r

## async for
async def gen():
    yield 1
    yield 2
r = [v async for v in gen()]

## await and error
import asyncio
a = 1
await asyncio.sleep(0)
1 / 0

## await in a loop
import asyncio
r = []
for i in range(3):
    r.append(await asyncio.sleep(0, i))

## cancelled task
import asyncio
t = asyncio.ensure_future(asyncio.sleep(9))
t.cancel()
try:
    await t
except asyncio.CancelledError:
    r = 'cancelled'

"""
)
"""Python only."""

TORCH = _cells(
    r"""
## straight line
y = x.sin() @ w
z = (y * 2).relu()
z.sum()

## semicolon
y = x * 2
y.sum();

## value is shown
(x @ w).shape

## in place
y = x.clone()
v = y[1]
v.mul_(3)
y[0, 0] = 7
y.t_()

## changes an older tensor
x.add_(1)
x[1].zero_()

## print in the middle
y = x * 2
print('mid', tuple(y.shape))
z = y + 1

## print of a value
y = x * 2
print(y.sum().item())
z = y + 1

## numbers
n = 3
f = 0.5
y = x * n + f
n += 1
f = f * 2 + n

## loop over range
y = x
for i in range(5):
    y = y + i
    y = y.cos()

## loop with a total
total = 0.0
count = 0
for row in x:
    s = (row * 2).sum()
    total += s.item()
    count += 1
mean = total / count

## loop with break and continue
r = []
for i in range(6):
    if i == 1:
        continue
    y = x * i
    if i == 4:
        break
    r.append(y.sum().item())

## loop else
for i in range(2):
    y = x + i
else:
    z = y * 2

## while
k = 0
y = x
while k < 3:
    y = y * 1.5
    k = k + 1

## nested loops
r = []
for i in range(2):
    a = x * i
    for j in range(2):
        b = a + j
        r.append(b.sum())

## with
with torch.no_grad():
    p = nn.Parameter(w.clone())
    y = x @ p
r = y.requires_grad

## branch on a number
flag = 3
if flag > 2:
    y = x + 1
else:
    y = x - 1

## branch on a value
if x.sum() > 100:
    y = x + 1
else:
    y = x - 1
z = y * 2

## conditional name
if x.shape[0] == 4:
    only = 1
y = x * 2
r = 'only' in globals()

## try
try:
    y = x @ x
except RuntimeError as e:
    y = x.clone()
    kind = type(e).__name__
z = y + 1

## function with a global
scale = 2
def f(v):
    return v * scale
scale = 5
y = f(x)
scale = 7
z = f(x)

## global number changed by a function
calls = 0
def f(v):
    global calls
    calls += 1
    return v * calls
a = f(x)
b = f(x)
c = x * calls

## late binding lambda
k = 2
g = lambda v: v * k
a = g(x)
k = 10
b = g(x)

## closures in comprehension
ks = [1, 2, 3]
r = [(x * k).sum() for k in ks]
d = {k: x + k for k in ks}
g = sum((x * k).sum() for k in ks)

## walrus
y = (t := x * 2) + t

## unpacking
a, b = x.chunk(2, dim=1)
(c, *d), e = (x, x, x), 3
f = c + e

## chained assignment
a = b = x * 2
a[0] = 0

## subscript and attribute targets
d = {}
d['k'] = x * 2
class Box: pass
box = Box()
box.v = x + 1
l = [0, 0]
l[1] = (x * 3).sum()

## delete
y = x * 2
z = y + 1
del y
r = z * 2

## annotated
y: torch.Tensor = x * 2
z = y + 1

## augmented on a name of this region
y = x * 2
y += 1
y @= w

## import between
y = x * 2
import math
z = y * math.pi

## module
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
with torch.no_grad():
    for p in net.parameters():
        p.fill_(0.1)
y = net(x)

## own module
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 2)
        self.calls = 0
    def forward(self, v):
        self.calls += 1
        return self.l(v).relu()
torch.manual_seed(1)
net = Net()
a = net(x)
b = net(x * 2)
c = net.calls

## random numbers
torch.manual_seed(3)
a = torch.rand(4)
b = torch.rand(4)

## numpy
import numpy as np
n = np.arange(4.0)
y = torch.from_numpy(n) + 1
m = y.numpy() * 2

## empty results
y = x[x > 5]
z = y.sum()

## views stay views
y = x * 1
v = y[0]
y.mul_(5)
r = v.sum()

## same object
y = x
r = y is x

## none and strings
a = None
s = 'n' * 3
y = x * len(s)

## await
import asyncio
y = x * 2
t = await asyncio.sleep(0, 3)
z = y + t

## line magic inside
y = x * 2
%time z = y + 1
r = z * 2

## match
match x.shape[0]:
    case 3:
        y = x * 3
    case _:
        y = x * 0

## lists of tensors
ts = [x, x * 2]
ts.append(x * 3)
s = torch.stack(ts)
ts[0] = s[0] + 1

## generator
g = torch.Generator().manual_seed(5)
a = torch.rand(3, generator=g)
b = torch.rand(3, generator=g)

"""
)
"""After `import torch; from torch import nn`, with tensors `x` (3, 4) and `w` (4, 2)."""
