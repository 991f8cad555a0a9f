# SPDX-License-Identifier: Apache-2.0
# A radar wave in a box with two materials: gprMax as it comes from PyPI, on OpenCL. Nearly all of its memory is in each launch.
#   python gpr_wave.py [cells] [steps] [folder]
# Prints a hash of the fields at a receiver.
import hashlib, pathlib, subprocess, sys
args = sys.argv[1:]
cells, steps, folder = args + ["48", "60", "."][len(args):]
size = int(cells) * 0.002
model = pathlib.Path(folder) / "wave.in"
model.write_text(f"""#title: wave
#domain: {size:g} {size:g} {size:g}
#dx_dy_dz: 0.002 0.002 0.002
#time_window: {steps}
#material: 6 0 1 0 half
#waveform: ricker 1 1.5e9 pulse
#hertzian_dipole: z {size / 2:g} {size / 2:g} {size * 0.6:g} pulse
#rx: {size * 0.7:g} {size / 2:g} {size * 0.6:g}
#box: 0 0 0 {size:g} {size:g} {size * 0.4:g} half
""", encoding="utf-8")
done = subprocess.run([sys.executable, "-m", "gprMax", str(model), "-opencl", "0", "--hide-progress-bars"], capture_output=True, text=True)
print(done.stdout[-3000:], file=sys.stderr)
print(done.stderr[-3000:], file=sys.stderr)
if done.returncode: sys.exit(done.returncode)
import h5py
with h5py.File(model.with_suffix(".h5")) as file:
  fields = file["rxs/rx1"]
  h = hashlib.sha256()
  for name in sorted(fields): h.update(name.encode()); h.update(fields[name][()].tobytes())
  print("fields", h.hexdigest()[:16], "largest", f"{max(abs(fields[name][()]).max() for name in fields):.6g}")
