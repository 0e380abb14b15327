//! What fuzz targets run, as ordinary functions.
