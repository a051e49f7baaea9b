// Run a Python program in Pyodide with the files of a page: node python.mjs PYODIDE SITE PROGRAM
import fs from "fs";
import path from "path";
import { pathToFileURL } from "url";
const [pyodide, site, program] = process.argv.slice(2).map((one) => path.resolve(one));
const { loadPyodide } = await import(pathToFileURL(path.join(pyodide, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: `${pyodide}/` });
const own = path.join(site, "pyodide");
const wheel = fs.readdirSync(own).find((name) => name.startsWith("numpy-"));
await python.loadPackage(path.join(own, wheel), { messageCallback() {} });
python.unpackArchive(new Uint8Array(fs.readFileSync(path.join(site, "joulemap.zip"))), "zip", { extractDir: "/joulemap" });
python.runPython("import sys; sys.path.insert(0, '/joulemap')");
python.FS.mkdirTree("/here");
python.FS.mount(python.FS.filesystems.NODEFS, { root: path.dirname(program) }, "/here");
try {
  console.log(python.runPython(fs.readFileSync(program, "utf8")));
} catch (error) {
  console.error(error.message); // without the source of Pyodide, which node prints for an error that is not caught
  process.exit(1);
}
