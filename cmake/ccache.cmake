# Compiles through ccache where it is, unless another launcher is set. Paths below the source folder count as relative, and
# the build folder does not count: so builds in other folders, as pip and CI make them, find what this one compiled.
find_program(BARACUDA_CCACHE ccache)
if(BARACUDA_CCACHE)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_${language}_COMPILER_LAUNCHER})
      set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${BARACUDA_CCACHE})
    endif()
  endforeach()
endif()
