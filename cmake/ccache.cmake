# Compiles through ccache where it is, unless another launcher is set. Paths below the source folder count as relative, and
# the build folder does not count: so builds in other folders, as pip and CI make them, find what this one compiled. Nor does the
# time, which a precompiled header might have read: else ccache passes by what is compiled with one.
find_program(BARACUDA_CCACHE ccache)
if(BARACUDA_CCACHE)
  set(sloppiness_CXX CCACHE_SLOPPINESS=pch_defines,time_macros)
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_${language}_COMPILER_LAUNCHER})
      set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
          ${sloppiness_${language}} ${BARACUDA_CCACHE})
    endif()
  endforeach()
endif()
