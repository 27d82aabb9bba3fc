# SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
"""Rules of CF 1.8 and of UGRID 1.0 that a NetCDF file has to keep: the names that attributes give, shapes of bounds and tables, types of
attributes, units, features at places. broken_rules(path) returns a text for each that is broken."""
import ctypes
import ctypes.util
import re

import netCDF4
import numpy

NAMES = ("coordinates", "ancillary_variables", "bounds", "grid_mapping", "node_coordinates", "face_coordinates", "edge_coordinates",
         "face_node_connectivity", "volume_node_connectivity", "edge_node_connectivity", "face_face_connectivity", "face_edge_connectivity", "mesh")
PLACES = {"timeSeries": "timeseries_id", "profile": "profile_id", "trajectory": "trajectory_id"}


class Units:
    """The units that UDUNITS knows; all, where its library is not installed."""

    def __init__(self):
        name = ctypes.util.find_library("udunits2")
        self.library = ctypes.CDLL(name) if name else None
        if self.library is None:
            return
        for function in (self.library.ut_read_xml, self.library.ut_parse):
            function.restype = ctypes.c_void_p
        self.library.ut_parse.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
        self.library.ut_set_error_message_handler.argtypes = [ctypes.c_void_p]
        self.library.ut_set_error_message_handler(ctypes.cast(self.library.ut_ignore, ctypes.c_void_p))
        self.system = self.library.ut_read_xml(None)

    def are_known(self, text):
        return self.library is None or self.library.ut_parse(self.system, text.encode(), 0) is not None


class Rules:
    def __init__(self, file, own_units):
        self.file, self.own_units, self.broken, self.units = file, own_units, [], Units()

    def keep(self, holds, text):
        if not holds:
            self.broken.append(text)

    def of(self, variable, attribute, otherwise=""):
        return getattr(variable, attribute) if attribute in variable.ncattrs() else otherwise

    def named(self, variable, attribute):
        """The variables that an attribute names, as far as they exist."""
        words = str(self.of(variable, attribute)).split()
        return [self.file.variables[word] for word in words if word in self.file.variables]

    def check(self):
        self.keep("CF-1." in self.of(self.file, "Conventions"), "the file names no version of CF")
        for variable in self.file.variables.values():
            self.keep(re.fullmatch("[A-Za-z][A-Za-z0-9_]*", variable.name), f"{variable.name}: CF does not recommend such a name")
            self.check_names(variable)
            self.check_types(variable)
            self.check_units(variable)
            self.check_coordinate(variable)
            self.check_mesh(variable)
        self.check_features()
        return self.broken

    def check_names(self, variable):
        name = variable.name
        for attribute in NAMES:
            for word in str(self.of(variable, attribute)).split():
                self.keep(word in self.file.variables, f"{name}: {attribute} names {word}, which does not exist")
        for each in self.named(variable, "coordinates"):
            along = each.dimensions[:-1] if each.dtype == "S1" else each.dimensions  # CF 6.1: labels have a last dimension of their own
            self.keep(set(along) <= set(variable.dimensions), f"{name}: its coordinate {each.name} has dimensions of its own")
        for each in self.named(variable, "bounds"):
            self.keep(each.dimensions[:-1] == variable.dimensions and each.dtype == variable.dtype, f"{name}: the bounds {each.name} do not fit")
        for attribute in ("cell_measures", "cell_methods"):
            text = self.of(variable, attribute)
            self.keep(not text or re.fullmatch(r"\w+: .+", text), f"{name}: {attribute} is '{text}'")
        for measure, word in re.findall(r"(\w+): (\w+)", self.of(variable, "cell_measures")):
            known = self.file.variables.get(word)
            is_beside = word in self.of(self.file, "external_variables").split()
            self.keep(measure in ("area", "volume") and (known is not None) != is_beside, f"{name}: cell_measures names {word}")
            if known is not None:
                self.keep(set(known.dimensions) <= set(variable.dimensions), f"{name}: {word} has dimensions of its own")
                self.keep(self.of(known, "units") == {"area": "m2", "volume": "m3"}.get(measure), f"{word}: a measure of cells has units")
        for word in re.findall(r"(\w+):", self.of(variable, "cell_methods")):
            self.keep(word in ("area", *variable.dimensions) or word in self.of(variable, "coordinates").split(), f"{name}: cell_methods names {word}")

    def check_types(self, variable):
        for attribute in ("flag_values", "flag_masks", "valid_min", "valid_max", "valid_range", "_FillValue"):
            if attribute in variable.ncattrs():
                self.keep(numpy.asarray(variable.getncattr(attribute)).dtype == variable.dtype, f"{variable.name}: {attribute} has another type")
        if "flag_values" in variable.ncattrs():
            count = numpy.size(variable.flag_values)
            self.keep(len(self.of(variable, "flag_meanings").split()) == count, f"{variable.name}: {count} flag_values have other flag_meanings")
            self.keep(numpy.isin(numpy.ma.compressed(variable[:]), variable.flag_values).all(), f"{variable.name}: values without meanings")

    def check_units(self, variable):
        units = self.of(variable, "units")
        if " since " in units:
            times = netCDF4.num2date(variable[:], units, self.of(variable, "calendar", "standard"))
            self.keep(numpy.all(numpy.diff(times) > times[:1] - times[:1]) if len(times) > 1 else True, f"{variable.name}: times do not rise")
        elif units and units not in self.own_units:
            self.keep(self.units.are_known(units), f"{variable.name}: UDUNITS does not know '{units}'")
        wanted = {"latitude": ("degrees_north", "degree_north"), "longitude": ("degrees_east", "degree_east")}.get(self.of(variable, "standard_name"))
        self.keep(wanted is None or units in wanted, f"{variable.name}: units '{units}' of a place")
        self.keep(self.of(variable, "standard_name") != "time" or " since " in units, f"{variable.name}: units '{units}' of a time")
        self.keep(self.of(variable, "axis", "X") in ("X", "Y", "Z", "T"), f"{variable.name}: axis")
        self.keep(self.of(variable, "positive", "up") in ("up", "down"), f"{variable.name}: positive")

    def check_coordinate(self, variable):
        if variable.dimensions != (variable.name,):
            return
        values = variable[:]
        self.keep(not numpy.ma.is_masked(values), f"{variable.name}: a coordinate lacks values")
        values = numpy.asarray(values)  # compared, since differences of unsigned integers wrap
        self.keep((values[1:] > values[:-1]).all() or (values[1:] < values[:-1]).all(), f"{variable.name}: a coordinate neither rises nor falls")

    def check_mesh(self, variable):
        role, name = self.of(variable, "cf_role"), variable.name
        if role == "mesh_topology":
            self.check_topology(variable)
        if "mesh" in variable.ncattrs():
            place = self.of(variable, "location")
            for mesh in self.named(variable, "mesh"):
                self.keep(self.of(mesh, "cf_role") == "mesh_topology", f"{name}: {mesh.name} is no mesh")
                self.keep(self.place(mesh, place) in variable.dimensions, f"{name}: it is not along its location '{place}'")

    def place(self, mesh, location):
        """The dimension of nodes, edges or faces of a mesh."""
        if f"{location}_dimension" in mesh.ncattrs():
            return mesh.getncattr(f"{location}_dimension")
        from_ = self.named(mesh, "node_coordinates" if location == "node" else f"{location}_node_connectivity")
        return from_[0].dimensions[0] if from_ else None

    def check_topology(self, mesh):
        dimension = self.of(mesh, "topology_dimension", None)
        self.keep(isinstance(dimension, numpy.integer) and 1 <= dimension <= 3, f"{mesh.name}: topology_dimension {dimension}")
        self.keep("UGRID-1.0" in self.of(self.file, "Conventions"), "the file does not name UGRID-1.0")
        self.keep(mesh.ndim == 0 and mesh.dtype.kind == "i", f"{mesh.name}: a mesh is an integer without dimensions")
        for location in ("node", "edge", "face"):
            for each in self.named(mesh, f"{location}_coordinates"):
                self.keep(each.dimensions == (self.place(mesh, location),), f"{each.name}: it is not along the {location}s")
                self.keep(self.of(each, "standard_name") in ("longitude", "latitude", "projection_x_coordinate", "projection_y_coordinate"), f"{each.name}: it tells no place")
        self.keep(len(self.named(mesh, "node_coordinates")) >= 2, f"{mesh.name}: node_coordinates")
        wanted = {1: "edge_node_connectivity", 2: "face_node_connectivity", 3: "volume_node_connectivity"}.get(int(dimension or 0))
        self.keep(wanted is None or self.named(mesh, wanted), f"{mesh.name}: it lacks {wanted}")
        for attribute in [each for each in mesh.ncattrs() if each.endswith("_connectivity")]:
            for table in self.named(mesh, attribute):
                self.check_table(mesh, table, attribute)

    def check_table(self, mesh, table, attribute):
        rows, to = attribute.split("_")[:2]
        self.keep(self.of(table, "cf_role") == attribute, f"{table.name}: cf_role is not {attribute}")
        self.keep(table.ndim == 2 and table.dtype.kind in "iu", f"{table.name}: a table has two dimensions and integers")
        self.keep(table.dimensions[0] == self.place(mesh, rows), f"{table.name}: its rows are no {rows}s")
        start = self.of(table, "start_index", 0)
        self.keep(start in (0, 1) and numpy.asarray(start).dtype.kind == "i", f"{table.name}: start_index {start}")
        if attribute == "face_node_connectivity":
            self.keep(all(len(set(row.compressed())) == row.count() >= 3 for row in numpy.ma.asarray(table[:])), f"{table.name}: a face has a node twice")
        numbers, count = numpy.ma.compressed(table[:]), len(self.file.dimensions[self.place(mesh, to)])
        self.keep(numpy.array_equal(numpy.unique(numbers), numpy.arange(start, start + count)), f"{table.name}: {numbers.min()} to {numbers.max()} of {count}")

    def check_features(self):
        """Discrete sampling geometries (CF-1.8, chapter 9)."""
        feature = self.of(self.file, "featureType", None)
        if feature is None:
            return
        self.keep(feature in PLACES, f"featureType {feature}")
        identities = [each for each in self.file.variables.values() if self.of(each, "cf_role") == PLACES.get(feature)]
        self.keep(len(identities) == 1, f"{len(identities)} variables have the cf_role of {feature}")
        helpers = {word for each in self.file.variables.values() for attribute in NAMES for word in str(self.of(each, attribute)).split()}
        for variable in self.file.variables.values():
            if variable.name in helpers or variable.name in self.file.dimensions or variable in identities:
                continue
            known = self.named(variable, "coordinates") + [self.file.variables[each] for each in variable.dimensions if each in self.file.variables]
            if feature == "profile":
                self.keep(any("positive" in each.ncattrs() for each in known), f"{variable.name}: no depth or height belongs to it")
            for each in known:
                is_vertical = self.of(each, "axis") == "Z" or self.of(each, "standard_name") in ("depth", "height", "altitude") or (
                    self.of(each, "units") == "m" and not self.of(each, "standard_name").startswith("projection_"))
                self.keep(not is_vertical or "positive" in each.ncattrs(), f"{each.name}: a vertical coordinate without positive (4.3, 9.5)")
            has_time = "time" in variable.dimensions  # what has none describes a feature, as the depth of a sensor
            for wanted in (*(("time",) if has_time else ()), "latitude", "longitude"):
                self.keep(wanted in [self.of(each, "standard_name") for each in known], f"{variable.name}: no {wanted} belongs to it")


def broken_rules(path, own_units=()):
    with netCDF4.Dataset(path) as file:
        return Rules(file, own_units).check()
